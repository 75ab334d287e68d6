"""Up to where one live client reads, and whether it has read all of that. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.client.record import Record
from penstock.connectors.live.position_token import Place, Positions


class Limit:
    """The end of one client's stream.

    Offsets without a record (deleted, the mark of a transaction) count as read: `reach` moves over them.
    """

    def __init__(self, positions: Positions, latest: Positions, ends: Positions | None, before_ms: int = 0) -> None:
        """A client at `positions`; `latest` is the end of each partition now.

        `ends` is where to stop. It is None for a time that has not come: then records before `before_ms` are given.
        """
        self._starts = dict(positions)
        self._positions = dict(positions)
        self._ends = ends
        self._before_ms = before_ms
        self._cuts: Positions = {}  # the first record that is too young
        # Behind the end of its topic: the topic was made again, and the reader goes back to its beginning.
        self._stale = {place: at for place, at in positions.items() if at > latest.get(place, at)}

    @property
    def is_reached(self) -> bool:
        """Whether every record before the end was given."""
        if self._ends is None:
            return False
        return all(
            place not in self._stale and self._positions.get(place, 0) >= end for place, end in self._ends.items()
        )

    @property
    def is_stale(self) -> bool:
        """Whether the reader has still to go back in a topic that was made again."""
        return bool(self._stale)

    @property
    def positions(self) -> Positions:
        """What comes behind the end, for the token of a stream that has reached it."""
        ends = self._ends or {}
        return {
            place: max(self._starts.get(place, 0), ends[place]) if place in ends else at
            for place, at in self._positions.items()
        }

    def admits(self, record: Record) -> bool:
        """Whether a record stands before the end."""
        place = (record.topic, record.partition)
        if self._ends is not None:
            return record.offset < self._ends.get(place, 0)
        if record.timestamp_ms >= self._before_ms:
            self._cuts[place] = min(record.offset, self._cuts.get(place, record.offset))
        return record.offset < self._cuts.get(place, record.offset + 1)

    def reach(self, place: Place, position: int) -> None:
        """Everything in a partition before `position` was given, or cannot be had."""
        if place in self._stale:
            if position == self._stale[place]:
                return
            del self._stale[place]
            self._starts[place] = self._positions[place] = position
        self._positions[place] = max(position, self._positions.get(place, 0))

    def close(self, place: Place) -> None:
        """The topic of a partition was deleted and made again: what stood before the end is gone."""
        if self._ends is not None and place not in self._stale:
            self._ends.pop(place, None)

    def settle(self, ends: Mapping[Place, int]) -> None:
        """The time has come: these are the ends."""
        self._ends = {place: min(end, self._cuts.get(place, end)) for place, end in ends.items()}

"""What a history says about one partition, gathered in one pass and judged afterwards."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from penstock.assure.history import Assign, End, Outcome, Poll, Send, Settle, Trim


class Sighting(NamedTuple):
    """A value was read at an offset; `event` is the first poll that did."""

    offset: int
    event: int


class Jump(NamedTuple):
    """A reader expected `low` and was next given `high` (or told that the log ends there)."""

    low: int
    high: int
    reader: str
    event: int


class Conflict(NamedTuple):
    """An offset was read as `first`, and by a later event as `second`."""

    offset: int
    first: Write
    second: Write
    event: int


class Write:
    """One value of one partition: how it was sent, what was answered, where it was read."""

    __slots__ = (
        "ack_event", "ack_offset", "acked", "fails", "more", "producer", "read_event", "read_offset",
        "send_event", "sends", "transaction", "value",
    )  # fmt: skip

    def __init__(self, value: str) -> None:
        self.value = value
        self.producer: str | None = None
        self.transaction: str | None = None
        self.sends = 0
        self.send_event = 0
        self.acked = False
        self.ack_event = 0
        self.ack_offset: int | None = None
        self.fails = 0
        # The first sighting stands in two plain fields: a million of them must stay small.
        self.read_offset: int | None = None
        self.read_event = 0
        self.more: dict[int, int] | None = None

    @property
    def failed(self) -> bool:
        """Every send of it failed for certain."""
        return 0 < self.sends <= self.fails and not self.acked

    @property
    def once(self) -> bool:
        """It was promised to stand in the log at most once."""
        return self.sends == 1 and self.producer is not None

    def sightings(self) -> Iterator[Sighting]:
        """Where it was read, each offset once, the first read first."""
        if self.read_offset is not None:
            yield Sighting(self.read_offset, self.read_event)
            for offset, event in (self.more or {}).items():
                yield Sighting(offset, event)

    def see(self, offset: int, event: int) -> None:
        """Note that it was read at an offset."""
        if self.read_offset is None:
            self.read_offset, self.read_event = offset, event
        elif offset != self.read_offset:
            if self.more is None:
                self.more = {}
            self.more.setdefault(offset, event)


class Reader:
    """One assignment on its way through the partition."""

    __slots__ = ("begun", "end", "name", "position", "runs", "start")

    def __init__(self, name: str, begun: int, start: int | None) -> None:
        self.name = name
        self.begun = begun
        self.start = start
        self.position = start
        self.runs: list[list[int]] = []
        self.end: int | None = None

    def covers(self) -> Coverage:
        """The offsets it read, as far as the log reached when it ended."""
        return Coverage([(low, high) for low, high in self.runs], self.end)


class Coverage:
    """A set of offsets, as ranges."""

    def __init__(self, ranges: list[tuple[int, int]], end: int | None = None) -> None:
        self._lows: list[int] = []
        self._highs: list[int] = []
        for low, high in sorted(ranges):
            if end is not None:
                high = min(high, end)
            if self._lows and low <= self._highs[-1]:
                self._highs[-1] = max(self._highs[-1], high)
            else:
                self._lows.append(low)
                self._highs.append(high)

    def __contains__(self, offset: int) -> bool:
        at = bisect_right(self._lows, offset) - 1
        return at >= 0 and offset < self._highs[at]


class Evidence:
    """All that a history says about one partition."""

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.writes: dict[str, Write] = {}
        self.at: dict[int, Write] = {}
        self.conflicts: list[Conflict] = []
        self.jumps: list[Jump] = []
        self.backsteps: list[Jump] = []
        self.trimmed = 0
        self.incomplete: list[str] = []
        self._reading: dict[tuple[str, int], Reader] = {}
        self._full_reads: list[Reader] = []

    def on_send(self, number: int, event: Send) -> None:
        write = self._write(event.value)
        write.sends += 1
        if write.sends == 1:
            write.send_event = number
            write.producer = event.producer
            write.transaction = event.transaction

    def on_settle(self, number: int, event: Settle) -> None:
        write = self._write(event.value)
        if not write.sends:
            self.incomplete.append(f"event {number} settles {event.value}, which was not recorded as sent")
            write.sends, write.send_event = 1, number
        if event.outcome is Outcome.FAIL:
            write.fails += 1
        elif event.outcome is Outcome.OK and not write.acked:
            write.acked, write.ack_event, write.ack_offset = True, number, event.offset

    def on_assign(self, number: int, event: Assign) -> None:
        name = f"assignment {event.assignment} of {event.process}"
        self._reading[event.process, event.assignment] = Reader(name, number, event.offset)

    def on_poll(self, number: int, event: Poll) -> None:
        reader = self._reader(number, event)
        position = reader.position
        at = self.at
        for offset, value in event.records:
            if offset != position or not reader.runs:
                self._turn(reader, offset, position, number)
            position = offset + 1
            seen = at.get(offset)
            if seen is None:
                at[offset] = write = self._write(value)
                write.see(offset, number)
            elif seen.value != value:
                write = self._write(value)
                write.see(offset, number)
                self.conflicts.append(Conflict(offset, seen, write, number))
        if event.records and position is not None:
            reader.position = reader.runs[-1][1] = position

    def on_end(self, number: int, event: End) -> None:
        reader = self._reader(number, event)
        reached = max((high for _, high in reader.runs), default=reader.start)
        if reached is not None and reached < event.offset:
            self.jumps.append(Jump(reached, event.offset, reader.name, number))
        reader.end = event.offset
        self._full_reads.append(reader)

    def on_trim(self, event: Trim) -> None:
        self.trimmed = max(self.trimmed, event.offset)

    def final_read(self) -> Reader | None:
        """The last assignment that read from the beginning to the end."""
        full = [r for r in self._full_reads if r.start is not None and r.start <= self.trimmed]
        return max(full, key=lambda reader: reader.begun, default=None)

    def _turn(self, reader: Reader, offset: int, position: int | None, number: int) -> None:
        if reader.runs and position is not None:
            reader.runs[-1][1] = position
        reader.runs.append([offset, offset + 1])
        if position is not None and offset > position:
            self.jumps.append(Jump(position, offset, reader.name, number))
        elif position is not None and offset < position:
            self.backsteps.append(Jump(position, offset, reader.name, number))

    def _write(self, value: str) -> Write:
        write = self.writes.get(value)
        if write is None:
            write = self.writes[value] = Write(value)
        return write

    def _reader(self, number: int, event: Poll | End) -> Reader:
        reader = self._reading.get((event.process, event.assignment))
        if reader is None:
            name = f"assignment {event.assignment} of {event.process}"
            self.incomplete.append(f"event {number} belongs to {name}, whose start was not recorded")
            reader = self._reading[event.process, event.assignment] = Reader(name, number, None)
        return reader

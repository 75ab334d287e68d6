"""The latest records of a topic, for clients that come back after a moment. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from penstock.connectors.live.envelope import Body


class Recent:
    """For each partition everything from `starts` on; bounded in count and bytes for the whole topic."""

    def __init__(self, starts: Mapping[int, int], count_max: int, bytes_max: int) -> None:
        self.starts = dict(starts)
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._is_cut = False  # what came first is gone: nothing fits before the rest without a hole
        self._bodies: deque[Body] = deque()

    def __len__(self) -> int:
        return len(self._bodies)

    def begin_again(self, starts: Mapping[int, int]) -> None:
        """Forget everything: the topic was deleted and made again."""
        self.starts = dict(starts)
        self._bodies.clear()
        self._bytes = 0
        self._is_cut = True

    def add(self, body: Body) -> None:
        """The next record of its partition."""
        record = body.record
        self.starts.setdefault(record.partition, record.offset)
        self._bodies.append(body)
        self._bytes += body.size
        while len(self._bodies) > self._count_max or self._bytes > self._bytes_max:
            oldest = self._bodies.popleft()
            self._bytes -= oldest.size
            self._is_cut = True
            self.starts[oldest.record.partition] = oldest.record.offset + 1

    def add_before(self, bodies: Sequence[Body]) -> None:
        """What stood before all that is here, as far as there is room: for each partition without a hole, in order."""
        for body in reversed(bodies):
            if self._is_cut or len(self._bodies) >= self._count_max or self._bytes + body.size > self._bytes_max:
                return
            self._bodies.appendleft(body)
            self._bytes += body.size
            self.starts[body.record.partition] = body.record.offset

    def since(self, offsets: Mapping[int, int]) -> list[Body] | None:
        """Everything from these offsets on, in order; None if some of it is not here any more."""
        if any(offsets.get(partition, 0) < start for partition, start in self.starts.items()):
            return None
        return [body for body in self._bodies if body.record.offset >= offsets.get(body.record.partition, 0)]

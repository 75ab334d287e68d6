"""A place between two batches."""

from __future__ import annotations

from typing import NamedTuple

from penstock.queue.log.segment import Segment


class Point(NamedTuple):
    """A batch boundary: an offset and where it stands."""

    offset: int
    segment: Segment
    position: int

    def end_in(self, segment: Segment) -> int:
        """The position in `segment` up to which a reader who may see all before this point may read."""
        if segment is self.segment:
            return self.position
        return segment.end if segment.base_offset < self.segment.base_offset else 0

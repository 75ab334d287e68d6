"""Transactions open in one partition: below the first of them everything is decided."""

from __future__ import annotations

from collections import deque

from penstock.queue.log.aborted_ranges import Aborted
from penstock.queue.log.point import Point


class Transactions:
    """By first offset, ascending. Changes are staged and count only after `commit`."""

    def __init__(self) -> None:
        self.open: dict[int, Point] = {}  # as the next batch finds it, what is staged included
        self._unstable: dict[int, Point] = {}  # written, and the end not seen by readers
        self._ended: deque[tuple[int, int]] = deque()  # offset of the marker, first offset; not seen by readers
        self._begun: list[Point] = []
        self._ending: list[tuple[int, Point]] = []
        self._aborted: list[Aborted] = []

    @property
    def is_staged(self) -> bool:
        return bool(self._begun or self._ending)

    @property
    def is_unstable(self) -> bool:
        """Whether some are neither ended nor seen to be."""
        return bool(self._unstable)

    def begin(self, point: Point) -> None:
        """Stage the first batch of a transaction."""
        self.open[point.offset] = point
        self._begun.append(point)

    def end(self, first_offset: int, marker_offset: int, aborted: Aborted | None) -> None:
        """Stage the end of a transaction."""
        self._ending.append((marker_offset, self.open.pop(first_offset)))
        if aborted is not None:
            self._aborted.append(aborted)

    def stable_after(self, first_offset: int, next_offset: int) -> int:
        """Up to where everything is decided once this one is ended by the batch before `next_offset`."""
        return next((offset for offset in self.open if offset != first_offset), next_offset)

    def commit(self) -> list[Aborted]:
        """The write succeeded; returns the aborted ranges in it."""
        for point in self._begun:
            self._unstable[point.offset] = point
        self._ended.extend((marker, point.offset) for marker, point in self._ending)
        aborted = self._aborted
        self._begun, self._ending, self._aborted = [], [], []
        return aborted

    def discard(self) -> None:
        """The write failed: what was staged never happened."""
        begun = {point.offset for point in self._begun}
        again = {point.offset: point for _, point in self._ending}
        kept = {offset: point for offset, point in {**self.open, **again}.items() if offset not in begun}
        self.open = dict(sorted(kept.items()))
        self._begun, self._ending, self._aborted = [], [], []

    def first_unstable(self, visible_offset: int) -> Point | None:
        """Where the first transaction begins whose end readers cannot see when they see all below `visible_offset`."""
        while self._ended and self._ended[0][0] < visible_offset:
            del self._unstable[self._ended.popleft()[1]]
        return next(iter(self._unstable.values()), None)

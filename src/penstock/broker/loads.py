"""Fetches that wait until what they read has come from the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.events import Load, Part

if TYPE_CHECKING:
    from penstock.broker.fetch import WaitingFetch


class Loads:
    """Who waits for which job. A few are under way at once; the others wait in the order they came."""

    def __init__(self, under_way_max: int) -> None:
        self._under_way_max = under_way_max
        self.under_way: dict[int, WaitingFetch] = {}
        self.put_off: dict[WaitingFetch, list[Part]] = {}
        self._last = 0

    def want(self, waiting: WaitingFetch, parts: list[Part]) -> None:
        """Let a fetch wait for these parts."""
        self.put_off[waiting] = parts

    def take(self) -> list[Load]:
        """What to begin now."""
        begun = []
        while self.put_off and len(self.under_way) < self._under_way_max:
            waiting = next(iter(self.put_off))
            self._last += 1
            self.under_way[self._last] = waiting
            begun.append(Load(self._last, self.put_off.pop(waiting)))
        return begun

    def forget(self, waiting: WaitingFetch) -> None:
        """Nobody wants the answer any more: what has not begun never will."""
        self.put_off.pop(waiting, None)

    def end(self, job: int) -> WaitingFetch:
        """Who waited for a job that has ended."""
        return self.under_way.pop(job)

"""Fetches that wait until what they read has come from the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.events import Load, Part

if TYPE_CHECKING:
    from penstock.broker.fetch import WaitingFetch


class Loads:
    """Who waits for which job; at most one for each request that is not answered yet."""

    def __init__(self) -> None:
        self._waiting: dict[int, WaitingFetch] = {}
        self._wanted: list[Load] = []
        self._last = 0

    def want(self, waiting: WaitingFetch, parts: list[Part]) -> None:
        """Let a fetch wait for these parts."""
        self._last += 1
        self._waiting[self._last] = waiting
        self._wanted.append(Load(self._last, parts))

    def take(self) -> list[Load]:
        """What was wanted since the last call."""
        wanted, self._wanted = self._wanted, []
        return wanted

    def end(self, job: int) -> WaitingFetch:
        """Who waited for a job that has ended."""
        return self._waiting.pop(job)

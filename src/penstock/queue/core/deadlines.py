"""Deadlines that are moved far more often than they are reached."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

PRUNE_FROM = 1_000

Ring = Callable[[int], None]


class Alarm:
    """Rings once when its time has come, unless moved or cancelled before."""

    __slots__ = ("due_ms", "queued_ms", "ring")

    def __init__(self, ring: Ring | None = None) -> None:
        self.ring = ring
        self.due_ms: int | None = None
        self.queued_ms: int | None = None


class Alarms:
    """A heap that holds one entry for each alarm; moving an alarm to a later time does not touch it."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Alarm]] = []
        self._count = 0
        self._prune_at = PRUNE_FROM

    def set(self, alarm: Alarm, due_ms: int) -> None:
        alarm.due_ms = due_ms
        if alarm.queued_ms is None or due_ms < alarm.queued_ms:
            self._push(alarm, due_ms)

    @staticmethod
    def cancel(alarm: Alarm) -> None:
        alarm.due_ms = None

    def _push(self, alarm: Alarm, due_ms: int) -> None:
        self._count += 1
        alarm.queued_ms = due_ms
        heapq.heappush(self._heap, (due_ms, self._count, alarm))
        if len(self._heap) > self._prune_at:
            self._prune()

    def _prune(self) -> None:
        kept = []
        for entry in self._heap:
            at, _, alarm = entry
            if alarm.due_ms is not None and alarm.queued_ms == at:
                kept.append(entry)
            elif alarm.queued_ms == at:
                alarm.queued_ms = None
        heapq.heapify(kept)
        self._heap = kept
        self._prune_at = 2 * len(kept) + PRUNE_FROM

    def due(self, now_ms: int) -> Iterator[Alarm]:
        """Alarms whose time has come, once each."""
        while self._heap and self._heap[0][0] <= now_ms:
            at, _, alarm = heapq.heappop(self._heap)
            if at != alarm.queued_ms:
                continue  # it was moved to an earlier time, and has another entry
            alarm.queued_ms = None
            if alarm.due_ms is None:
                continue
            if alarm.due_ms > now_ms:
                self._push(alarm, alarm.due_ms)
                continue
            alarm.due_ms = None
            yield alarm

    @property
    def next_ms(self) -> int | None:
        """When to look again; now and then too early, never too late."""
        return self._heap[0][0] if self._heap else None

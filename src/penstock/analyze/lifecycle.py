"""The life of one query: when it starts, waits, is started again, and when it is given up. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from penstock.analyze.failures import Failure
from penstock.events.query_status import QueryState

BACKOFF_MS_MIN = 500
BACKOFF_MS_MAX = 30_000


class Lifecycle:
    """What state a query is in and why. Whoever acts asks `wants_start` and tells what happened."""

    def __init__(self, restarts_max: int, restart_window_ms: int) -> None:
        self.state: QueryState = QueryState.STARTING
        self.reason: str | None = None
        self.restarts = 0
        self._restarts_max = restarts_max
        self._window_ms = restart_window_ms
        self._failed_at: deque[int] = deque()
        self._tries_in_a_row = 0
        self._is_up = False
        self._queue_answers = True
        self._due_ms = 0

    def wants_start(self, now_ms: int) -> bool:
        """Whether it should be started now."""
        if self._is_up or self.state in (QueryState.PARKED, QueryState.PAUSED, QueryState.STOPPED):
            return False
        return self._queue_answers and now_ms >= self._due_ms

    def postpone(self, reason: str) -> None:
        """It starts later than the others."""
        self.reason = reason

    def on_starting(self) -> None:
        """It is being started."""
        if self.state != QueryState.STARTING:
            self.restarts += 1

    def on_started(self) -> None:
        """Spark runs it."""
        self._is_up = True
        self.state, self.reason = QueryState.RUNNING, None

    def on_progress(self) -> None:
        """It got something done: what failed before is no pattern."""
        self._tries_in_a_row = 0

    def on_queue(self, answers: bool, where: str) -> None:
        """The queue answers, or does not: a running query waits, and goes on by itself."""
        self._queue_answers = answers
        if not answers and self.state in (QueryState.STARTING, QueryState.RUNNING, QueryState.RESTARTING):
            self.state, self.reason = QueryState.WAITING, f"the queue at {where} does not answer"
        elif answers and self.state == QueryState.WAITING and self._is_up:
            self.state, self.reason = QueryState.RUNNING, None

    def on_ended(self, failure: Failure, now_ms: int) -> None:
        """It ended although nobody stopped it."""
        self._is_up = False
        self._due_ms = now_ms + min(BACKOFF_MS_MIN << min(self._tries_in_a_row, 10), BACKOFF_MS_MAX)
        self._tries_in_a_row += 1
        if failure.kind == "away":
            self.state, self.reason = QueryState.WAITING, failure.reason
        elif failure.kind == "lost":
            self.park(failure.reason)
        elif failure.kind == "refused":
            self.state, self.reason, self._due_ms = QueryState.RESTARTING, failure.reason, now_ms
        else:
            self._on_fault(failure.reason, now_ms)

    def _on_fault(self, reason: str, now_ms: int) -> None:
        self._failed_at.append(now_ms)
        while self._failed_at and self._failed_at[0] <= now_ms - self._window_ms:
            self._failed_at.popleft()
        if len(self._failed_at) > self._restarts_max:
            self.park(f"failed {len(self._failed_at)} times within {self._window_ms // 1000} s: {reason}")
        else:
            self.state, self.reason = QueryState.RESTARTING, reason

    def park(self, reason: str) -> None:
        """Given up until the app is started again, or the query is ordered to start."""
        self._is_up = False
        self.state, self.reason = QueryState.PARKED, reason

    def pause(self) -> None:
        """Stopped by an order, until another order."""
        self._is_up = False
        self.state, self.reason = QueryState.PAUSED, "ordered by 'penstock queries pause'"

    def order_start(self) -> None:
        """Ordered to start: what failed before does not count."""
        self._is_up = False
        self.state, self.reason, self._due_ms = QueryState.STARTING, None, 0
        self._failed_at.clear()
        self._tries_in_a_row = 0

    def on_stopped(self) -> None:
        """It was stopped on purpose."""
        self._is_up = False
        if self.state not in (QueryState.PARKED, QueryState.PAUSED):
            self.state, self.reason = QueryState.STOPPED, None


def ready_words(states: Sequence[QueryState]) -> str:
    """That it serves, and how many of the queries do not; why was said of each."""
    counts = [(sum(state == at for state in states), at) for at in (QueryState.PARKED, QueryState.PAUSED)]
    return ", ".join([f"ready {len(states)} queries", *(f"{number} of them {at}" for number, at in counts if number)])

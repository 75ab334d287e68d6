"""One query on Spark: starts it, looks after it, tells how it is, stops it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.analyze.checkpoints import Checkpoint
from penstock.analyze.failures import Failure, failure_of, failure_text, lost_words
from penstock.analyze.fingerprint.comparison import Fingerprint
from penstock.analyze.kept import Kept, obey
from penstock.analyze.lifecycle import Lifecycle
from penstock.analyze.modes import Choice
from penstock.analyze.processing import processing
from penstock.analyze.progress import (
    Batch,
    Movement,
    Numbers,
    Written,
    batch_of,
    is_caught_up,
    lag_behind,
    mark_of,
    take_progress,
    unseen,
)
from penstock.analyze.queue_probe import Queue
from penstock.analyze.result_latency import Newest
from penstock.client.topic_identity import checkpoint_error
from penstock.events.query_order import BEGINNING, Action, QueryOrder
from penstock.events.query_status import QueryState, QueryStatus
from penstock.jvm.worker_output import WorkerOutput
from penstock.plan.policies import Mode

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

# Each question is a millisecond of work for Spark, beside events that somebody waits for.
_LOOKS_EACH = 10  # of them one asks
_LOOKS_AFTER_START = 50
_STOP_AGAIN_S = 0.05
_LOOKS_AFTER_COMMIT = 5  # all of these ask: the file of a commit is there a moment before the word of it


class AnalyzeStatus(NamedTuple):
    """What all queries of a report have in common."""

    app: str
    ui: str | None
    at_ms: int
    slots: int | None


@dataclass(frozen=True)
class Job:
    """What a runner runs: `begin` starts it anew in a mode on a checkpoint."""

    name: str
    reads: tuple[str, ...]
    writes: str
    begin: Callable[[Choice, Path], StreamingQuery]
    may_fall_back: bool = False
    from_latest: bool = False
    keeps_event: bool = True
    written: Written = field(default_factory=dict)
    state_rows_max: int = 2**63  # with more rows of state it is parked
    fence: Callable[[Mapping[str, str]], None] | None = None  # before a new checkpoint: ends what wrote on the old one


class Runner:
    """A job, its life and its numbers."""

    def __init__(
        self,
        job: Job,
        choice: Choice,
        checkpoint: Checkpoint,
        life: Lifecycle,
        queue: Queue,
        output: WorkerOutput,
        fingerprint: Fingerprint | None = None,
        fresh: Choice | None = None,
    ) -> None:
        """`fresh` is the mode in which it starts on a new checkpoint."""
        self.job = job
        self._fingerprint = fingerprint
        self._fresh = fresh or choice
        self.remark: str | None = None  # what is wrong, though it runs
        self._halting: threading.Thread | None = None
        self.choice = choice
        self.life = life
        self.numbers = Numbers()
        self._checkpoint = checkpoint
        self._queue = queue
        self._output = output
        self._movement = Movement()
        self._printed = 0
        self._query: StreamingQuery | None = None
        self._batch: Batch | None = None
        self._moved_ns = 0
        self._began_ms = 0
        self._looks = 0
        self._looks_asking = 0
        self._was_begun = False  # something was done on the checkpoint before this start

    def start(self, now_ms: int) -> None:
        """Start it, now; what goes wrong is told to its life."""
        self.life.on_starting()
        self._began_ms = now_ms
        self._printed = self._output.size
        self._was_begun = self._checkpoint.is_begun and not (self.kept.is_void or self.job.from_latest)
        try:
            if self.kept.is_void:
                self._renew()
            elif self.job.from_latest:
                self._checkpoint.clear(keeps_start=False)
            there, kept = self._queue.topic_ids(self.job.reads), self._checkpoint.topic_ids()
            if changed := checkpoint_error(kept, there, self._checkpoint.files):
                # Its positions are not reported: they are of a topic that is gone.
                self._on_failure(Failure("lost", changed), now_ms)
                return
            positions = self._checkpoint.positions()
            if not self.numbers.positions:  # nothing was done since the last run: that is where it stands
                self.numbers.positions = {
                    topic: {str(p): at for p, at in ps.items()} for topic, ps in positions.items()
                }
            if lost := lost_words(positions, self._queue.ranges(self.job.reads)):
                self._on_failure(Failure("lost", lost), now_ms)
                return
            self._checkpoint.remember(self.choice, kept | there, self._fingerprint, self.job.writes)
            self._query = self.job.begin(self.choice, self._checkpoint.path)
            self._looks_asking = _LOOKS_AFTER_START  # what Spark refuses, it refuses in its first moments
        except Exception as error:  # noqa: BLE001  # the top of a supervisor: one that cannot start ends no other
            self._on_failure(failure_of(failure_text(error), self._crash_words), now_ms)
        else:
            self.life.on_started()

    def _renew(self) -> None:
        """Remove the checkpoint that an order made void; after a crash in the middle it is done again as a whole."""
        kept = self.kept
        if self.job.fence is not None:
            self.job.fence(kept.obeyed)
        starts = {} if kept.begin == BEGINNING else self._queue.starts(self.job.reads, kept.begin)
        self._checkpoint.renew(replace(kept, is_void=False, starts=starts))
        self.choice, self._batch = self._fresh, None
        self.numbers = Numbers()

    def park(self, reason: str) -> None:
        """Stop it, and leave it so until the app is started again, or it is ordered to start."""
        self.life.park(reason)
        self.halt()

    def halt(self) -> bool:
        """Stop it; whether it has stopped. Spark takes up to its stop timeout: the other queries do not wait for it."""
        if self._halting is None and self._query is not None:
            query, self._query = self._query, None
            self._halting = threading.Thread(target=_stop, args=(query,), name=f"stop {self.job.name}", daemon=True)
            self._halting.start()
        if self._halting is not None and not self._halting.is_alive():
            self._halting = None
        return self._halting is None

    def obey(self, order: QueryOrder, log: str) -> bool:
        """Obey an order; False while its stop is under way, and it is to be called again."""
        is_up = not self.kept.is_paused and self.life.state is not QueryState.PARKED
        goes_on = order.action is Action.DROP or (order.action is Action.RESUME and is_up)
        if not goes_on and not self.halt():
            return False
        kept = obey(self.kept, order, log)
        self._checkpoint.keep(kept)
        if goes_on:
            return True
        if kept.is_paused:
            self.life.pause()
        else:
            self.life.order_start()
        return True

    def renew(self) -> bool:
        """Stop it, and start it again from its checkpoint with new tables; False while its stop is under way."""
        if self.life.state in (QueryState.PARKED, QueryState.PAUSED) or (self._query is None and self._halting is None):
            return True  # its next start takes them
        if not self.halt():
            return False
        self.life.order_start()
        return True

    @property
    def kept(self) -> Kept:
        """What is kept beside its checkpoint."""
        return self._checkpoint.kept()

    def look(self, now_ms: int) -> None:
        """Take what it did since it was last asked; notice its end."""
        query = self._query
        if query is None or not self._is_to_be_asked():
            return
        is_active = query.isActive
        if new := self._new_progress(query):
            self._batch = batch_of(new[-1])
            self.life.on_progress()
            self._checkpoint.sync()  # before anybody is told that it is committed
            for progress in new:
                take_progress(self.numbers, progress, now_ms, self.job.written.pop(batch_of(progress)[1], None))
        if is_active and (self.numbers.state_rows or 0) > self.job.state_rows_max:
            self.park(
                f"its state has {self.numbers.state_rows:,} rows, and state_rows_max in [analyze] is "
                f"{self.job.state_rows_max:,}: give watermark=, group by less, or raise the limit"
            )
        elif not is_active:
            self._query = None
            self._on_failure(failure_of(failure_text(query.exception()), self._crash_words), now_ms)

    def _is_to_be_asked(self) -> bool:
        if (moved_ns := self._checkpoint.moved_ns) != self._moved_ns:
            self._moved_ns, self._looks_asking = moved_ns, max(self._looks_asking, _LOOKS_AFTER_COMMIT)
        self._looks = (self._looks + 1) % _LOOKS_EACH
        if self._looks_asking:
            self._looks_asking -= 1
            return True
        return self._looks == 0

    def _new_progress(self, query: StreamingQuery) -> list[Mapping[str, Any]]:
        """What Spark reported since the last look, in order; quick batches come several between two looks."""
        last = query.lastProgress
        if last is None or batch_of(last) == self._batch:
            return []
        if self._batch is not None and _follows(self._batch, batch_of(last)):
            return [last]
        return unseen(query.recentProgress, self._batch)  # many texts, so only asked for where some were missed

    def leave(self) -> None:
        """It ends with the JVM: a clean stop of Spark's keeps nothing more, and takes its time."""
        self.life.on_stopped()

    def is_behind(self, ends: Mapping[tuple[str, int], int]) -> bool:
        """Whether it has much to catch up with, or that is not known yet."""
        if self.life.state in (QueryState.PARKED, QueryState.PAUSED) or self.job.from_latest:
            return False
        mine = self._mine(ends)
        return {topic for topic, _ in mine} != set(self.job.reads) or not is_caught_up(self.numbers, mine)

    def _mine(self, ends: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], int]:
        return {place: end for place, end in ends.items() if place[0] in self.job.reads}

    def status(
        self, ends: Mapping[tuple[str, int], int], newest: Newest, now_ms: int, host: AnalyzeStatus
    ) -> QueryStatus:
        """How it is, as the topic penstock.queries tells it; `now_ms` is of a clock that never jumps."""
        numbers, life = self.numbers, self.life
        reached, mine = newest.since(self._began_ms), self._mine(ends)
        lag = lag_behind(numbers, mine, reached)
        # Where nothing is committed yet the lag is unknown, and all that the topic holds is input.
        has_input = bool(mine) if lag is None else lag > 0
        is_up = life.state in (QueryState.RUNNING, QueryState.WAITING, QueryState.RESTARTING)
        stalled_ms = self._movement.look(
            mark_of(numbers, reached), now_ms, has_input=is_up and (has_input or life.state is not QueryState.RUNNING)
        )
        took = processing(newest.minute, numbers.batches if self.choice.mode is Mode.MICROBATCH else ())
        return QueryStatus(
            app=host.app,
            ui=host.ui,
            at_ms=host.at_ms,
            slots=host.slots,
            query=self.job.name,
            state=life.state,
            mode=self.choice.mode,
            mode_reason=self.choice.reason,
            reads=list(self.job.reads),
            writes=self.job.writes,
            keeps_event=self.job.keeps_event,
            rows_in_per_s=numbers.rows_in_per_s,
            rows_out_per_s=numbers.rows_out_per_s,
            rows_in=numbers.rows_in,
            rows_out=numbers.rows_out,
            lag=lag,
            stalled_ms=stalled_ms,
            watermark=numbers.watermark,
            late=numbers.late,
            state_rows=numbers.state_rows,
            state_bytes=numbers.state_bytes,
            checkpoint_ms=numbers.checkpoint_ms,
            positions=numbers.positions,
            latency_ms=newest.latency_ms,
            processing_ms=took,
            reason=life.reason or self.remark,
            restarts=life.restarts,
            obeyed=sorted(self.kept.obeyed.values()),
        )

    def _crash_words(self) -> str:
        return self._output.last_words(self._printed)

    def _on_failure(self, failure: Failure, now_ms: int) -> None:
        if failure.kind != "refused":
            self.life.on_ended(failure, now_ms)
        elif self.job.may_fall_back and self.choice.mode is Mode.REALTIME and not self._was_begun:
            self.choice = Choice(Mode.MICROBATCH, failure.reason)
            self._checkpoint.clear()  # nothing was done in it: Spark refuses before the first event
            self.life.on_ended(failure, now_ms)
        elif self._was_begun:
            again = f"penstock queries start {self.job.name} --from beginning"
            self.life.park(f"{failure.reason}, and its checkpoint was begun in real time: undo the change, or {again}")
        else:
            self.life.park(f"{failure.reason}: say mode='auto' or mode='microbatch'")


def _stop(query: StreamingQuery) -> None:
    """Until it has stopped: a new one on the same checkpoint must not start before that."""
    with suppress(Exception):  # the JVM is gone, and the query with it
        while query.isActive:
            with suppress(Exception):  # it did not stop within Spark's timeout
                query.stop()
            time.sleep(_STOP_AGAIN_S)


def _follows(before: Batch, batch: Batch) -> bool:
    return batch == (before[0], before[1] + 1)

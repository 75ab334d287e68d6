"""The lease of an app: at most one run of it writes results to a queue.

A run holds the lease as long as the last record of the topic `penstock.APP.lease` is its own. A record is a transaction
under one transactional id, so that of two runs only the last that initialised can write. The queue stamps the records:
no two clocks are compared.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Any, NamedTuple

import msgspec
from confluent_kafka import KafkaException, Producer

from penstock.client.factory import client_settings
from penstock.client.lookup import last_record
from penstock.errors import ConfigError, PenstockError
from penstock.kafka.target import KafkaTarget
from penstock.plan.topics import Wanted

RENEW_S = 2.0
UNSAFE_AFTER_S = 6.0  # a writer that was not renewed for so long stops: before another run may begin
FREE_AFTER_MS = 10_000
_ANSWER_S = 4.0  # shorter than UNSAFE_AFTER_S: a renewal that hangs is tried once more
_WATCH_S = 0.5
_SILENT = logging.Logger("penstock.lease", logging.CRITICAL + 1)  # a fenced producer is no news: a renewal reports it
_RECORDS, _QUESTIONS = 0, 1  # partitions: what counts, and empty records by which the queue tells its time
# Hours of renewals: the lease counts for seconds.
_SETTINGS = {"retention.ms": "3600000", "segment.bytes": str(2**20), "message.timestamp.type": "LogAppendTime"}


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """A run of an app, as its lease names it."""

    data: str  # identifies the data folder: a later run on it goes on where this one stopped
    host: str
    pid: int
    since_ms: int
    folder: str
    serves_queue: bool = False  # its own broker is the queue: the queue ends with the run


class LeaseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One record of the lease: its holder holds it, or has released it."""

    holder: Holder
    is_held: bool = True


_record = msgspec.json.Decoder(LeaseRecord)


class Standing(Enum):
    """What the last record of a lease means for one run."""

    FREE = "free"
    MINE = "mine"
    HELD = "held"


class Found(NamedTuple):
    """The last record of a lease, and when the queue stamped it."""

    record: LeaseRecord
    stamped_ms: int


class LeaseHeldError(ConfigError):
    """Another run holds the lease."""


class LeaseLostError(PenstockError):
    """Another run took the lease over."""

    def __init__(self, app: str, holder: Holder) -> None:
        super().__init__(
            f"another `penstock run` on {holder.host} (process {holder.pid}, data in {holder.folder}) has taken over "
            f"the app {app}: this one stops"
        )
        self.holder = holder


def lease_topic(app: str) -> str:
    """The topic and the transactional id of an app's lease."""
    return f"penstock.{app}.lease"


def wanted_lease_topic(app: str, replicas: int) -> Wanted:
    """The topic of an app's lease, as it must be."""
    return Wanted(lease_topic(app), 2, replicas, _SETTINGS)


def standing(found: Found | None, me: Holder, now_ms: int) -> Standing:
    """What the last record means at `now_ms`, both by the queue's clock."""
    if found is None or not found.record.is_held:
        return Standing.FREE
    if found.record.holder.data == me.data:
        return Standing.MINE
    return Standing.FREE if now_ms - found.stamped_ms >= FREE_AFTER_MS else Standing.HELD


def held_words(app: str, holder: Holder) -> str:
    """The refusal of a second run."""
    return (
        f"another `penstock run` works on the app {app}, {_words(holder)}: two runs would write each result twice. "
        "Stop that one, or pass --take-over"
    )


def _words(holder: Holder) -> str:
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(holder.since_ms / 1000))
    return f"on {holder.host} since {since} (process {holder.pid}, data in {holder.folder})"


class Lease:
    """One run's side of the lease. Every call blocks; PenstockError means that the queue does not answer."""

    def __init__(self, queue: KafkaTarget, app: str, me: Holder) -> None:
        self._queue = queue
        self._app = app
        self._me = me
        self._topic = lease_topic(app)
        self._producer: Any = None

    def acquire(self, *, take_over: bool = False, wait: Callable[[float], None] = time.sleep) -> None:
        """Hold the lease from now on; LeaseHeldError if another run renews it and `take_over` is not given."""
        found, now_ms = self._last(), self._queue_time_ms()
        is_held = standing(found, self._me, now_ms) is Standing.HELD
        if is_held and not take_over:
            self._watch(found, now_ms, wait)
        elif is_held and found is not None and found.record.holder.serves_queue:
            raise LeaseHeldError(f"--take-over ends the run that also serves the queue: {_words(found.record.holder)}")
        try:
            self._begin(lambda last: take_over or standing(last, self._me, self._queue_time_ms()) is not Standing.HELD)
        except LeaseLostError as quicker:
            raise LeaseHeldError(held_words(self._app, quicker.holder)) from None
        if is_held and take_over:
            wait(UNSAFE_AFTER_S)  # by then the writers of the run before have stopped
            self.renew()

    def _watch(self, first: Found | None, now_ms: int, wait: Callable[[float], None]) -> None:
        """Return once the lease is free: a holder that was killed renews no more. LeaseHeldError if it is renewed."""
        last = first
        while last is not None and standing(last, self._me, now_ms) is Standing.HELD:
            if last != first:
                raise LeaseHeldError(held_words(self._app, last.record.holder))
            wait(_WATCH_S)
            last, now_ms = self._last(), self._queue_time_ms()

    def renew(self) -> None:
        """Hold it for longer; LeaseLostError if another run has taken it."""
        if self._producer is None:
            # Looked at before it is fenced: the run that has taken the lease goes on undisturbed.
            if (last := self._last()) is not None and not self._is_mine(last):
                raise LeaseLostError(self._app, last.record.holder)
            self._begin(self._is_mine)
            return
        producer, self._producer = self._producer, None
        try:
            self._write(producer, LeaseRecord(holder=self._me))
        except KafkaException as error:
            raise PenstockError(f"the lease is not renewed ({error.args[0].str()})") from None
        self._producer = producer

    def release(self) -> None:
        """Let the next run begin at once; as far as the queue answers."""
        producer, self._producer = self._producer, None
        if producer is not None:
            with suppress(KafkaException):
                self._write(producer, LeaseRecord(holder=self._me, is_held=False))

    def _begin(self, may_hold: Callable[[Found], bool]) -> None:
        """Fence every other run, then look whose lease it is, then write: of several that try one succeeds."""
        try:
            producer: Any = Producer(
                client_settings(self._queue)
                | {
                    "transactional.id": self._topic,
                    "transaction.timeout.ms": int(UNSAFE_AFTER_S * 1000),
                    "message.timeout.ms": int(_ANSWER_S * 1000),
                    "socket.timeout.ms": int(_ANSWER_S * 1000),
                    "linger.ms": 0,
                },
                logger=_SILENT,
            )
            producer.init_transactions(_ANSWER_S)
            found = self._last()
            if found is not None and not may_hold(found):
                raise LeaseLostError(self._app, found.record.holder)
            self._write(producer, LeaseRecord(holder=self._me))
        except KafkaException as error:
            raise _no_answer(error) from None
        self._producer = producer

    def _write(self, producer: Any, record: LeaseRecord) -> None:
        producer.begin_transaction()
        producer.produce(self._topic, msgspec.json.encode(record), partition=_RECORDS)
        try:
            producer.commit_transaction(_ANSWER_S)
        except KafkaException:
            with suppress(KafkaException):
                producer.abort_transaction(_ANSWER_S)
            raise

    def _is_mine(self, found: Found) -> bool:
        return found.record.holder.data == self._me.data

    def _last(self) -> Found | None:
        try:
            record = last_record(self._queue, self._topic, _ANSWER_S)
        except KafkaException as error:
            raise _no_answer(error) from None
        if record is None:
            return None
        try:
            return Found(_record.decode(record.value or b""), record.timestamp_ms)
        except msgspec.DecodeError:
            raise ConfigError(f"the last record of {self._topic} is no lease: delete that topic") from None

    def _queue_time_ms(self) -> int:
        """The queue's clock, by the stamp of an empty record."""
        stamps: list[int] = []

        def on_delivery(error: Any, message: Any) -> None:
            if error is None:
                stamps.append(message.timestamp()[1])

        settings = client_settings(self._queue) | {"message.timeout.ms": int(_ANSWER_S * 1000), "linger.ms": 0}
        producer: Any = Producer(settings)
        producer.produce(self._topic, b"", partition=_QUESTIONS, on_delivery=on_delivery)
        producer.flush(_ANSWER_S)
        if not stamps:
            raise PenstockError("the queue does not answer")
        return stamps[0]


def _no_answer(error: KafkaException) -> PenstockError:
    return PenstockError(f"the queue does not answer ({error.args[0].str()})")

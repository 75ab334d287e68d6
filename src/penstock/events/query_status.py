"""What a query reports about itself: the record of the topic penstock.queries."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

import msgspec

# Every client may write to the topic, and a number of 400 digits is a number to JSON.
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Positions = dict[str, dict[str, Count]]  # topic, partition, next offset; JSON has no numbers as names


class QueryState(StrEnum):
    """The state of a query. The text of a state that only a newer version knows is kept: it equals no member."""

    STARTING = "starting"
    RUNNING = "running"
    WAITING = "waiting"
    RESTARTING = "restarting"
    PARKED = "parked"
    PAUSED = "paused"  # by an order
    UNDECLARED = "undeclared"  # the app no longer has it, and its checkpoint is still there
    DROPPED = "dropped"  # that is removed; reported once
    STOPPED = "stopped"

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        if not isinstance(value, str):
            return None
        unknown = str.__new__(cls, value)
        unknown._name_ = unknown._value_ = value
        return unknown


class Spread(msgspec.Struct, frozen=True):
    """Least, mean and most, in milliseconds."""

    min: float
    avg: float
    max: float


class Processing(msgspec.Struct, frozen=True):
    """How long a query took in the last minute with work, in milliseconds, and what took that long."""

    min: float
    avg: float
    max: float
    of: Literal["result", "batch"]


class QueryStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One report; what the query does not know is null."""

    app: str
    query: str
    at_ms: Count
    state: QueryState
    mode: str = ""
    mode_reason: str | None = None
    reason: str | None = None
    ui: str | None = None
    reads: list[str] = []
    writes: str = ""
    keeps_event: bool | None = None
    rows_in_per_s: float | None = None
    rows_out_per_s: float | None = None
    rows_in: Count = 0
    rows_out: Count = 0
    lag: Count | None = None
    stalled_ms: Count = 0
    watermark: str | None = None
    late: Count | None = None
    state_rows: Count | None = None
    state_bytes: Count | None = None
    checkpoint_ms: Count | None = None
    positions: Positions = {}
    latency_ms: Spread | None = None
    processing_ms: Processing | None = None
    restarts: Count = 0
    slots: Count | None = None  # of all of Spark
    obeyed: list[str] = []  # the last order of each log that it obeyed

    @property
    def key(self) -> str:
        """The key of its record: several apps may share a queue."""
        return f"{self.app}/{self.query}"


_decoder = msgspec.json.Decoder(QueryStatus)


def encode_status(status: QueryStatus) -> bytes:
    """The value of its record."""
    return msgspec.json.encode(status)


def decode_status(value: bytes | None) -> QueryStatus | None:
    """The report that a record holds; None if it holds none: every client may write to the topic."""
    try:
        return _decoder.decode(value or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


SILENT = "silent"  # shown instead of the last state; no query reports it
SILENT_AFTER_MS = 10_000  # each query reports every second


def is_silent(last: QueryStatus, age_ms: float) -> bool:
    """Whether a query should have reported again; `age_ms` is the age of its last report.

    A query that reported `stopped` is not silent: it ends its reports with that one.
    """
    return last.state != QueryState.STOPPED and age_ms > SILENT_AFTER_MS

"""What a query reports about itself: the record of the topic penstock.queries."""

from __future__ import annotations

from typing import Literal

import msgspec

Positions = dict[str, dict[str, int]]  # topic, partition, next offset; JSON has no numbers as names


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
    at_ms: int
    state: str
    mode: str = ""
    mode_reason: str | None = None
    reason: str | None = None
    ui: str | None = None
    reads: list[str] = []
    writes: str = ""
    keeps_event: bool | None = None
    rows_in_per_s: float | None = None
    rows_out_per_s: float | None = None
    rows_in: int = 0
    rows_out: int = 0
    lag: int | None = None
    stalled_ms: int = 0
    watermark: str | None = None
    late: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    checkpoint_ms: int | None = None
    positions: Positions = {}
    latency_ms: Spread | None = None
    processing_ms: Processing | None = None
    restarts: int = 0
    slots: int | None = None  # of all of Spark

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
    except msgspec.DecodeError:
        return None

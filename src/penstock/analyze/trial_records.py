"""The records that go into a trial of a query, and those that come out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from penstock.errors import PenstockError


class QueryFailedError(PenstockError):
    """The query ended on the records that it was given; the message is the reason that a run would report."""


class InputHeader(msgspec.Struct, frozen=True):
    """A header of a record of a topic."""

    key: str
    value: bytes


class InputRecord(msgspec.Struct, frozen=True):
    """A record as a topic holds it. Its JSON text is how it gets to Spark."""

    topic: str
    partition: int
    offset: int
    time_ms: int  # when the queue stored it
    value: bytes
    headers: tuple[InputHeader, ...] = ()


class OutputRecord(NamedTuple):
    """A record that a query writes."""

    key: str | None
    value: bytes | None  # None: a tombstone
    headers: tuple[tuple[str, str], ...]


class DeadRecord(NamedTuple):
    """A record that reaches no query, and the reason that its dead letter has."""

    topic: str
    value: bytes
    reason: str


class Streamed(NamedTuple):
    """What a query writes after each piece of its input, and how many rows the watermark drops."""

    pieces: Sequence[Sequence[OutputRecord]]
    late: int

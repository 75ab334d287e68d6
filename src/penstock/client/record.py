"""A record as a reader of the queue gets it."""

from __future__ import annotations

from typing import Any, NamedTuple


class Record(NamedTuple):
    """One record; `timestamp_ms` is -1 where the queue keeps none."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]

    def header(self, name: str) -> bytes | None:
        """The first header of that name."""
        return next((value for key, value in self.headers if key == name), None)


def record_of(message: Any) -> Record:
    """The record in a message of the client library that is no error."""
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        message.headers() or [],
    )

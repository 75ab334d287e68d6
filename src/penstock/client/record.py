"""A record as a reader of the queue gets it."""

from __future__ import annotations

from typing import Any, NamedTuple

_NO_TIMESTAMP = -1


class Record(NamedTuple):
    """One record; `timestamp_ms` is -1 where the queue keeps none."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]

    @property
    def known_timestamp_ms(self) -> int | None:
        """The timestamp; None where the queue keeps none."""
        return None if self.timestamp_ms == _NO_TIMESTAMP else self.timestamp_ms

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

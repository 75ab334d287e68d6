"""An event on its way from a sender to the queue, where it becomes a record."""

from __future__ import annotations

from typing import NamedTuple

from penstock.events.headers import Headers


class Event(NamedTuple):
    """The bytes of an event; its key and id once they are known, and the headers that its sender gave."""

    value: bytes
    key: bytes | None = None
    id: str = ""
    headers: Headers | None = None

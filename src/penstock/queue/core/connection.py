"""One client: its requests are answered in the order they came, whatever each of them waits for."""

from __future__ import annotations

from collections import deque

from penstock.ports import Buffer
from penstock.queue.core.produce_template import Shapes
from penstock.queue.core.waiting_request import WaitingRequest


class Slot:
    """The place of one answer in the order of a connection."""

    __slots__ = ("connection", "held_bytes", "reply")

    def __init__(self, connection: Connection, request_bytes: int) -> None:
        self.connection = connection
        self.held_bytes = request_bytes
        self.reply: bytes | list[Buffer] | None = None


class Connection:
    """One client; queue/core/memory_budget.py keeps `held_bytes`, `replied_bytes` and `unsent_bytes`."""

    __slots__ = (
        "backlog",
        "fetches",
        "held_bytes",
        "is_closed",
        "is_paused",
        "number",
        "opening",
        "peer",
        "replied_bytes",
        "shapes",
        "slots",
        "unsent_bytes",
    )

    def __init__(self, number: int, peer: str) -> None:
        self.number = number
        self.peer = peer
        self.slots: deque[Slot] = deque()
        self.backlog: deque[memoryview] = deque()
        self.fetches: dict[WaitingRequest, None] = {}
        self.shapes: Shapes | None = None
        self.opening: WaitingRequest | None = None  # later requests wait for it
        self.is_paused = False
        self.is_closed = False
        self.held_bytes = 0
        self.replied_bytes = 0
        self.unsent_bytes = 0

    def abandon_requests(self) -> None:
        """The client is gone: none of its requests waits for anything any more."""
        for fetch in list(self.fetches):
            fetch.abandon()
        if self.opening is not None:
            self.opening.abandon()

"""Replies to clients: in the order of each connection's requests, sent together at the end of a step."""

from __future__ import annotations

from penstock.ports import Buffer
from penstock.queue.core.connection import Connection, Slot
from penstock.queue.core.counters import Counters
from penstock.queue.core.events import Close, Effect, Reply
from penstock.queue.core.memory_budget import REPLY_BYTES_UNHELD, MemoryBudget


class Replies:
    """Takes requests in, answers them, and closes connections."""

    __slots__ = ("_counters", "_effects", "_outbox", "_room")

    def __init__(self, effects: list[Effect], room: MemoryBudget, counters: Counters) -> None:
        """`effects` are those of the step, the same list for all parts of the node."""
        self._effects = effects
        self._room = room
        self._counters = counters
        self._outbox: dict[Connection, list[Buffer]] = {}

    def enter(self, slot: Slot) -> None:
        """A request takes its place in the order of its connection."""
        connection = slot.connection
        connection.slots.append(slot)
        self._room.take(connection, slot.held_bytes)

    def answer(self, slot: Slot, reply: bytes | list[Buffer]) -> None:
        """Answer a request; it leaves when all before it on its connection have been answered."""
        slot.reply = reply
        connection = slot.connection
        slots = connection.slots
        if slots and slots[0].reply is None:
            self._room.hold_back(slot, reply)
            return
        out = self._outbox.get(connection)
        if out is None:
            out = self._outbox[connection] = []
        freed = size = 0
        while slots and (ready := slots[0].reply) is not None:
            freed += slots.popleft().held_bytes
            if type(ready) is bytes:
                out.append(ready)
                size += len(ready)
            else:
                out += ready  # type: ignore[arg-type]  # a list of chunks, if it is not bytes
                size += sum(map(len, ready))  # type: ignore[arg-type]
        room = self._room
        room.held_bytes -= freed
        connection.held_bytes -= freed
        connection.replied_bytes += size
        if connection.replied_bytes >= REPLY_BYTES_UNHELD:
            room.hold_replies(connection)

    def close(self, connection: Connection, kind: str, reason: str) -> None:
        """Stop talking to a client; the reason goes to the log."""
        if not connection.is_closed:
            connection.is_closed = True
            self._counters.closed_for(kind)
            chunks = self._outbox.pop(connection, None)
            if chunks:
                self._effects.append(Reply(connection.number, chunks, False))
            self._effects.append(Close(connection.number, reason))

    def send(self) -> None:
        """At the end of a step: what was answered leaves."""
        for connection, chunks in self._outbox.items():
            if chunks and not connection.is_closed:
                self._effects.append(Reply(connection.number, chunks, connection.unsent_bytes > 0))
        self._outbox.clear()

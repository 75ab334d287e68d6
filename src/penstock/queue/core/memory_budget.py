"""How much of the broker's memory clients may hold: requests not yet answered, replies not yet taken."""

from __future__ import annotations

from penstock.config.broker import BrokerConfig
from penstock.kafka.wire.apis import ApiKey
from penstock.ports import Buffer
from penstock.queue.core.connection import Connection, Slot

REPLY_BYTES_UNHELD = 64 * 1024  # replies below this in all are not worth an event when they have left
LITTLE_BYTES = 64 * 1024
_FETCH = int(ApiKey.FETCH)


class MemoryBudget:
    """Counts what each client and all together hold, and knows who is not read meanwhile."""

    def __init__(self, config: BrokerConfig) -> None:
        self.held_bytes = 0
        self.paused: dict[Connection, None] = {}
        self._most = config.inflight_bytes_max
        self._most_each = config.inflight_bytes_max_connection
        self._little = min(LITTLE_BYTES, self._most_each)

    def take(self, connection: Connection, size: int) -> None:
        connection.held_bytes += size
        self.held_bytes += size

    def free(self, connection: Connection, size: int) -> None:
        connection.held_bytes -= size
        self.held_bytes -= size

    def hold_back(self, slot: Slot, reply: bytes | list[Buffer]) -> None:
        """A reply that waits for those before it counts like the request it answers."""
        size = len(reply) if isinstance(reply, bytes) else sum(map(len, reply))
        slot.held_bytes += size
        self.take(slot.connection, size)

    def hold_replies(self, connection: Connection) -> None:
        """Replies count until the client has taken them; small ones once there are many of them."""
        connection.unsent_bytes += connection.replied_bytes
        self.take(connection, connection.replied_bytes)
        connection.replied_bytes = 0

    def drained(self, connection: Connection) -> None:
        """The client has taken all replies."""
        self.free(connection, connection.unsent_bytes)
        connection.unsent_bytes = connection.replied_bytes = 0

    def leave(self, connection: Connection) -> None:
        """The client is gone, and holds nothing any more."""
        self.free(connection, connection.held_bytes)
        connection.unsent_bytes = connection.replied_bytes = 0
        self.paused.pop(connection, None)

    def is_left_for(self, connection: Connection) -> bool:
        """Who holds little may go on even when others have used up what all may hold."""
        held = connection.held_bytes
        return held <= self._little or (held <= self._most_each and self.held_bytes <= self._most)

    def may_take(self, connection: Connection, frame: memoryview) -> bool:
        """Nothing overtakes a request whose batches are being opened. A fetch waits for every request before it."""
        if connection.opening is not None:
            return False
        if len(frame) > 1 and frame[1] == _FETCH and frame[0] == 0 and connection.slots:
            return False
        held = connection.held_bytes  # as in is_left_for, without a call: every request of a busy client comes by here
        return held <= self._little or (held <= self._most_each and self.held_bytes <= self._most)

    def may_go_on(self, connection: Connection) -> bool:
        """Whether nothing holds back a paused client any more."""
        if connection.is_closed:
            return False
        backlog = connection.backlog
        return self.may_take(connection, backlog[0]) if backlog else self.is_left_for(connection)

    @property
    def is_full(self) -> bool:
        """Whether clients hold all they may: until they take their replies, nothing large is sent."""
        return self.held_bytes > self._most

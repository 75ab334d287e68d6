"""How much of the broker's memory clients may hold: requests not yet answered, replies not yet taken."""

from __future__ import annotations

from penstock.broker.connection import Connection
from penstock.config import BrokerConfig

REPLY_BYTES_UNHELD = 64 * 1024  # replies below this in all are not worth an event when they have left
LITTLE_BYTES = 64 * 1024


class Room:
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

    @property
    def is_full(self) -> bool:
        """Whether clients hold all they may: until they take their replies, nothing large is sent."""
        return self.held_bytes > self._most

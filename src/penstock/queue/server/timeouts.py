"""Clients that take too long are closed, a few in each turn: thousands at once would keep all others waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.config.broker import BrokerConfig
from penstock.queue.server.channel import Channel

SWEEP_MS = 1000
SWEPT_AT_ONCE = 256
CLOSING_COSTS = 32  # as much as looking at so many


class Timeouts:
    """Looks through all clients once a second; `close` gets each that is late, and why, and says if it was there."""

    def __init__(self, config: BrokerConfig, close: Callable[[Channel, str], bool]) -> None:
        self._config = config
        self._close = close
        self._left: list[Channel] = []
        self.due_ms = 0

    @property
    def is_beginning(self) -> bool:
        """Whether the next turn of it begins with the first client."""
        return not self._left

    def run(self, channels: Iterable[Channel], now_ms: int) -> None:
        """Some of them; the others follow in the next turns."""
        if not self._left:
            self._left = list(channels)
        effort = SWEPT_AT_ONCE
        while self._left and effort > 0:
            effort -= 1
            channel = self._left.pop()
            reason = channel.why_late(self._config, now_ms)
            if reason is not None and self._close(channel, reason):
                effort -= CLOSING_COSTS
        self.due_ms = now_ms if self._left else now_ms + SWEEP_MS

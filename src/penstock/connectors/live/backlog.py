"""What waits for one client, and what is given up when the client is too slow. Pure."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, Protocol, TypeVar


class Waiting(Protocol):
    """What a backlog must know of a message."""

    @property
    def event(self) -> str: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def json(self) -> bytes: ...


MessageT = TypeVar("MessageT", bound=Waiting)
_Name = tuple[str, bytes] | int


class Backlog(Generic[MessageT]):
    """Messages in their order, bounded in count and bytes while the client is slow; beyond, its policy decides.

    disconnect: all are given up and `overflowed` is set. drop_oldest: the oldest go, counted. conflate: a message
    replaces an older one with the same event and key, counted; beyond the bounds the oldest go, as with drop_oldest.
    """

    def __init__(self, policy: str, count_max: int, bytes_max: int) -> None:
        self.overflowed = False
        self.dropped = 0  # since it was last asked for
        self.conflated = 0
        self._policy = policy
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._bytes = 0
        self._arrivals = 0
        self._messages: OrderedDict[_Name, MessageT] = OrderedDict()

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def size_bytes(self) -> int:
        return self._bytes

    def offer(self, message: MessageT, *, is_slow: bool) -> None:
        """Put a message behind the others; a client is slow that does not take what it was given, not in any burst."""
        if self.overflowed:
            return
        self._arrivals += 1
        name: _Name = self._arrivals
        if self._policy == "conflate" and message.key is not None:
            name = (message.event, message.key)
            older = self._messages.pop(name, None)
            if older is not None:
                # The newer one goes to the end: tokens must not go back.
                self._bytes -= len(older.json)
                self.conflated += 1
        self._messages[name] = message
        self._bytes += len(message.json)
        if is_slow:
            self.keep_bounds()

    def keep_bounds(self) -> None:
        """Give up what is beyond the bounds, as the policy says; for a client found slow while nothing comes."""
        # One message alone may be larger than the bound: it would never be sent else.
        while len(self._messages) > self._count_max or (self._bytes > self._bytes_max and len(self._messages) > 1):
            if self._policy == "disconnect":
                self._overflow()
                return
            self._bytes -= len(self._messages.popitem(last=False)[1].json)
            self.dropped += 1

    def take(self, bytes_max: int) -> list[MessageT]:
        """The oldest messages, at least one if there is any, about as many as fit."""
        taken: list[MessageT] = []
        size = 0
        while self._messages and size < bytes_max:
            _, message = self._messages.popitem(last=False)
            size += len(message.json)
            taken.append(message)
        self._bytes -= size
        return taken

    def take_dropped(self) -> int:
        """How many were dropped since the last call."""
        dropped, self.dropped = self.dropped, 0
        return dropped

    def _overflow(self) -> None:
        self.overflowed = True
        self._messages.clear()
        self._bytes = 0


def shared_policy(policies: list[tuple[str, int]]) -> tuple[str, int]:
    """The policy and bound of a client of several deliveries: what all say, else disconnect, which hides nothing."""
    names = {policy for policy, _ in policies}
    return (policies[0][0] if len(names) == 1 else "disconnect"), min(count_max for _, count_max in policies)

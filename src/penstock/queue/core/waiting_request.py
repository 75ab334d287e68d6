"""Requests whose answers wait, as connections and partitions know them."""

from __future__ import annotations


class WaitingRequest:
    """A request that waits; its connection holds it. See `waiting_fetch` and `batch_openings`."""

    __slots__ = ()

    def abandon(self) -> None:
        """Wait for nothing any more: the client is gone."""
        raise NotImplementedError


class WaitingRead(WaitingRequest):
    """A request that waits for records; each of its partitions holds it."""

    __slots__ = ()

    def on_visible(self, visible: int, stable: int) -> None:
        """More bytes of a partition can be read: by all, and by readers of committed records."""
        raise NotImplementedError

    def on_deleted(self) -> None:
        """The topic of a partition was deleted."""
        raise NotImplementedError

"""How much of an open file is durable with everything that a reader needs, not only its data. Pure."""

from __future__ import annotations


class Extent:
    """What of a file is durable with everything that a reader needs, so that bytes written over it are only data."""

    __slots__ = ("_begun", "_has_grown", "_is_whole", "_settled", "_written", "device", "is_overwritten")

    def __init__(self, device: int, size: int) -> None:
        self.device = device
        self.is_overwritten = False
        self._written = size
        self._begun = 0
        self._settled = 0  # what stood there before may be in memory only
        self._has_grown = False
        self._is_whole = True

    def on_write(self, position: int, end: int) -> None:
        """Bytes are about to be written there."""
        if end > self._settled:
            self._has_grown = True
            if position > self._written:
                self._is_whole = False  # a hole: what fills it later is more than data
            if end > self._written:
                self._written = end

    def begin_sync(self) -> None:
        """All that was written so far is about to be synced."""
        self.is_overwritten = self._is_whole and not self._has_grown
        self._has_grown = False
        self._begun = self._written

    def end_sync(self, *, is_durable: bool) -> None:
        """A sync has failed, or no more is under way."""
        if is_durable:
            self._settled = self._begun
        else:
            self._is_whole = False  # nobody knows what the disk holds

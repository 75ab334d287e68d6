"""How many bytes of events are under way, and whether more may come. Pure."""

from __future__ import annotations

EVENT_OVERHEAD_BYTES = 512  # what librdkafka and Python keep of a small event besides its bytes, about


class MemoryBudget:
    """A bound over all requests of an edge."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.taken = 0

    def take(self, size: int) -> bool:
        """Make room for `size` more bytes; False if they do not fit. One request always fits an empty room."""
        if self.taken and self.taken + size > self.bytes_max:
            return False
        self.taken += size
        return True

    def give(self, size: int) -> None:
        """What was taken is stored, or forgotten."""
        self.taken -= size

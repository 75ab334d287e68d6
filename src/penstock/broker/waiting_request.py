"""The common type of requests whose answers wait: fetches, and produce requests with large batches."""

from __future__ import annotations


class WaitingRequest:
    """Connections and partitions hold waiting requests by this type. See `waiting_fetch` and `openings`."""

    __slots__ = ()

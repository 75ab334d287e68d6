"""A request whose answer waits for something other than its turn."""

from __future__ import annotations


class WaitingRequest:
    """What a connection and a partition remember of such a request; each kind of it is beside what it waits for."""

    __slots__ = ()

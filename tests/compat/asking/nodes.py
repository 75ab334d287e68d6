"""The two brokers that are asked."""

from __future__ import annotations

from typing import NamedTuple

from asking.connection import Connection


class Both(NamedTuple):
    """The same kind of connection to each broker."""

    penstock: Connection
    kafka: Connection

"""FindCoordinator: who looks after a group or a transaction."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, int8, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class FindCoordinatorRequest(Message):
    """Names of groups or of transactions."""

    versions = (0, 6)
    flexible = 3

    key: str = string(until=3)
    key_type: int = int8(since=1)
    coordinator_keys: list[str] = array(string, since=4)


@dataclass(slots=True)
class Coordinator(Struct):
    key: str = string(since=4)
    node_id: int = int32(since=4)
    host: str = string(since=4)
    port: int = int32(since=4)
    error_code: int = int16(since=4)
    error_message: str | None = string.or_null(default="", since=4, ignorable=True)


@dataclass(slots=True)
class FindCoordinatorResponse(Message):
    """The node that looks after each."""

    versions = (0, 6)
    flexible = 3

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16(until=3)
    error_message: str | None = string.or_null(default="", since=1, until=3, ignorable=True)
    node_id: int = int32(until=3)
    host: str = string(until=3)
    port: int = int32(until=3)
    coordinators: list[Coordinator] = array(Coordinator, since=4)

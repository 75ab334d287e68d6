"""Heartbeat: a member says that it lives."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import int16, int32, string
from penstock.kafka.wire.message import Message


@dataclass(slots=True)
class HeartbeatRequest(Message):
    """A member of a generation."""

    versions = (0, 4)
    flexible = 4

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string.or_null(since=3)


@dataclass(slots=True)
class HeartbeatResponse(Message):
    """Whether it still is one."""

    versions = (0, 4)
    flexible = 4

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()

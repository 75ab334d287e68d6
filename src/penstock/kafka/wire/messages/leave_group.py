"""LeaveGroup: members go, and do not wait to be missed."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class MemberIdentity(Struct):
    member_id: str = string(since=3)
    group_instance_id: str | None = string.or_null(since=3)
    reason: str | None = string.or_null(since=5, ignorable=True)


@dataclass(slots=True)
class LeaveGroupRequest(Message):
    """Who leaves."""

    versions = (0, 5)
    flexible = 4

    group_id: str = string()
    member_id: str = string(until=2)
    members: list[MemberIdentity] = array(MemberIdentity, since=3)


@dataclass(slots=True)
class MemberResponse(Struct):
    member_id: str = string(since=3)
    group_instance_id: str | None = string.or_null(default="", since=3)
    error_code: int = int16(since=3)


@dataclass(slots=True)
class LeaveGroupResponse(Message):
    """What became of each."""

    versions = (0, 5)
    flexible = 4

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    members: list[MemberResponse] = array(MemberResponse, since=3)

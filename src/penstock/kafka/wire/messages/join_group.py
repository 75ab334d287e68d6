"""JoinGroup: become a member of the next generation."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, boolean, data, int16, int32, string
from penstock.kafka.wire.message import Message, Struct
from penstock.ports import Buffer


@dataclass(slots=True)
class JoinGroupRequestProtocol(Struct):
    name: str = string()
    metadata: Buffer = data()


@dataclass(slots=True)
class JoinGroupRequest(Message):
    """Who wants in, and which ways of assigning it knows."""

    versions = (0, 9)
    flexible = 6

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32(default=-1, since=1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string.or_null(since=5)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string.or_null(since=8, ignorable=True)


@dataclass(slots=True)
class JoinGroupResponseMember(Struct):
    member_id: str = string()
    group_instance_id: str | None = string.or_null(since=5, ignorable=True)
    metadata: Buffer = data()


@dataclass(slots=True)
class JoinGroupResponse(Message):
    """The generation; its leader learns of all members."""

    versions = (0, 9)
    flexible = 6

    throttle_time_ms: int = int32(since=2, ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string.or_null(since=7, ignorable=True)
    protocol_name: str | None = string.or_null(default="", nullable_since=7)
    leader: str = string()
    skip_assignment: bool = boolean(since=9)
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)

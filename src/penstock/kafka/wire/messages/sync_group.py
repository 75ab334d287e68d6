"""SyncGroup: the leader hands out the assignment, the others fetch theirs."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, data, int16, int32, string
from penstock.kafka.wire.message import Message, Struct
from penstock.ports import Buffer


@dataclass(slots=True)
class SyncGroupRequestAssignment(Struct):
    member_id: str = string()
    assignment: Buffer = data()


@dataclass(slots=True)
class SyncGroupRequest(Message):
    """A member of a generation; from its leader, what everybody gets."""

    versions = (0, 5)
    flexible = 4

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string.or_null(since=3)
    protocol_type: str | None = string.or_null(since=5, ignorable=True)
    protocol_name: str | None = string.or_null(since=5, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


@dataclass(slots=True)
class SyncGroupResponse(Message):
    """What this member gets."""

    versions = (0, 5)
    flexible = 4

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string.or_null(since=5, ignorable=True)
    protocol_name: str | None = string.or_null(since=5, ignorable=True)
    assignment: Buffer = data()

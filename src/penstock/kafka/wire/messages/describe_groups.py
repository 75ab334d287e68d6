"""DescribeGroups: the members of classic groups."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, boolean, data, int16, int32, string
from penstock.kafka.wire.message import Message, Struct
from penstock.ports import Buffer


@dataclass(slots=True)
class DescribeGroupsRequest(Message):
    """Names of groups."""

    versions = (0, 6)
    flexible = 5

    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean(since=3)


@dataclass(slots=True)
class DescribedGroupMember(Struct):
    member_id: str = string()
    group_instance_id: str | None = string.or_null(since=4, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: Buffer = data()
    member_assignment: Buffer = data()


@dataclass(slots=True)
class DescribedGroup(Struct):
    error_code: int = int16()
    error_message: str | None = string.or_null(since=6)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32(default=-(2**31), since=3)


@dataclass(slots=True)
class DescribeGroupsResponse(Message):
    """Each group with its members."""

    versions = (0, 6)
    flexible = 5

    throttle_time_ms: int = int32(since=1, ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)

"""ListGroups: which groups there are."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class ListGroupsRequest(Message):
    """Which states and types to list; none means all."""

    versions = (0, 5)
    flexible = 3

    states_filter: list[str] = array(string, since=4)
    types_filter: list[str] = array(string, since=5)


@dataclass(slots=True)
class ListedGroup(Struct):
    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string(since=4, ignorable=True)
    group_type: str = string(since=5, ignorable=True)


@dataclass(slots=True)
class ListGroupsResponse(Message):
    """The groups."""

    versions = (0, 5)
    flexible = 3

    throttle_time_ms: int = int32(since=1, ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)

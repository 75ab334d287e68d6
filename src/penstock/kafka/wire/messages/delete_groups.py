"""DeleteGroups: forget groups with their positions."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class DeleteGroupsRequest(Message):
    """Names of groups."""

    versions = (0, 2)
    flexible = 2

    groups_names: list[str] = array(string)


@dataclass(slots=True)
class DeletableGroupResult(Struct):
    group_id: str = string()
    error_code: int = int16()


@dataclass(slots=True)
class DeleteGroupsResponse(Message):
    """What became of each."""

    versions = (0, 2)
    flexible = 2

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)

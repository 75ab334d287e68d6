"""ListConfigResources: what has settings."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, int8, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class ListConfigResourcesRequest(Message):
    """Types of resources; none means all."""

    versions = (0, 1)
    flexible = 0

    resource_types: list[int] = array(int8, since=1)


@dataclass(slots=True)
class ListedConfigResource(Struct):
    resource_name: str = string()
    resource_type: int = int8(default=16, since=1, ignorable=True)


@dataclass(slots=True)
class ListConfigResourcesResponse(Message):
    """Each resource by name and type."""

    versions = (0, 1)
    flexible = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    config_resources: list[ListedConfigResource] = array(ListedConfigResource)

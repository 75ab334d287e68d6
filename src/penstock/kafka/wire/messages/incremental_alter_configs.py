"""IncrementalAlterConfigs: change settings one by one."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, boolean, int8, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class AlterableConfig(Struct):
    name: str = string()
    config_operation: int = int8()
    value: str | None = string.or_null(default="")


@dataclass(slots=True)
class AlterConfigsResource(Struct):
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[AlterableConfig] = array(AlterableConfig)


@dataclass(slots=True)
class IncrementalAlterConfigsRequest(Message):
    """Changes to the settings of topics and brokers."""

    versions = (0, 1)
    flexible = 1

    resources: list[AlterConfigsResource] = array(AlterConfigsResource)
    validate_only: bool = boolean()


@dataclass(slots=True)
class AlterConfigsResourceResponse(Struct):
    error_code: int = int16()
    error_message: str | None = string.or_null(default="")
    resource_type: int = int8()
    resource_name: str = string()


@dataclass(slots=True)
class IncrementalAlterConfigsResponse(Message):
    """What became of each topic's and broker's changes."""

    versions = (0, 1)
    flexible = 1

    throttle_time_ms: int = int32()
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse)

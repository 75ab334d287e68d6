"""DescribeConfigs: read settings."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, array_or_null, boolean, int8, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class DescribeConfigsResource(Struct):
    resource_type: int = int8()
    resource_name: str = string()
    configuration_keys: list[str] | None = array_or_null(string)


@dataclass(slots=True)
class DescribeConfigsRequest(Message):
    """Topics and brokers whose settings are asked for; null keys ask for all."""

    versions = (1, 4)
    flexible = 4

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource)
    include_synonyms: bool = boolean()
    include_documentation: bool = boolean(since=3)


@dataclass(slots=True)
class DescribeConfigsSynonym(Struct):
    name: str = string()
    value: str | None = string.or_null(default="")
    source: int = int8()


@dataclass(slots=True)
class DescribeConfigsResourceResult(Struct):
    name: str = string()
    value: str | None = string.or_null(default="")
    read_only: bool = boolean()
    config_source: int = int8(default=-1, ignorable=True)
    is_sensitive: bool = boolean()
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, ignorable=True)
    config_type: int = int8(since=3, ignorable=True)
    documentation: str | None = string.or_null(default="", since=3, ignorable=True)


@dataclass(slots=True)
class DescribeConfigsResult(Struct):
    error_code: int = int16()
    error_message: str | None = string.or_null(default="")
    resource_type: int = int8()
    resource_name: str = string()
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult)


@dataclass(slots=True)
class DescribeConfigsResponse(Message):
    """The settings of each topic and broker."""

    versions = (1, 4)
    flexible = 4

    throttle_time_ms: int = int32()
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult)

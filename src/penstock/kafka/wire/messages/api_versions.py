"""ApiVersions: what this broker can speak."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, boolean, int16, int32, int64, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class ApiVersionsRequest(Message):
    """The client's name and version; the first request of a connection."""

    versions = (0, 4)
    flexible = 3

    client_software_name: str = string(since=3, ignorable=True)
    client_software_version: str = string(since=3, ignorable=True)


@dataclass(slots=True)
class ApiVersion(Struct):
    api_key: int = int16()
    min_version: int = int16()
    max_version: int = int16()


@dataclass(slots=True)
class SupportedFeatureKey(Struct):
    name: str = string(since=3)
    min_version: int = int16(since=3)
    max_version: int = int16(since=3)


@dataclass(slots=True)
class FinalizedFeatureKey(Struct):
    name: str = string(since=3)
    max_version_level: int = int16(since=3)
    min_version_level: int = int16(since=3)


@dataclass(slots=True)
class ApiVersionsResponse(Message):
    """The versions served of each API."""

    versions = (0, 4)
    flexible = 3

    error_code: int = int16()
    api_keys: list[ApiVersion] = array(ApiVersion)
    throttle_time_ms: int = int32(since=1, ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(SupportedFeatureKey, since=3, tag=0, ignorable=True)
    finalized_features_epoch: int = int64(default=-1, since=3, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(FinalizedFeatureKey, since=3, tag=2, ignorable=True)
    zk_migration_ready: bool = boolean(since=3, tag=3, ignorable=True)

"""DescribeAcls: who may do what."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, int8, int16, int32, string
from penstock.kafka.wire.message import Message, Struct

_LITERAL = 3


@dataclass(slots=True)
class DescribeAclsRequest(Message):
    """Which rules; null lets all pass."""

    versions = (1, 3)
    flexible = 2

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string.or_null(default="")
    pattern_type_filter: int = int8(default=_LITERAL)
    principal_filter: str | None = string.or_null(default="")
    host_filter: str | None = string.or_null(default="")
    operation: int = int8()
    permission_type: int = int8()


@dataclass(slots=True)
class AclDescription(Struct):
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@dataclass(slots=True)
class DescribeAclsResource(Struct):
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8(default=_LITERAL)
    acls: list[AclDescription] = array(AclDescription)


@dataclass(slots=True)
class DescribeAclsResponse(Message):
    """Those that passed, or why none can be told."""

    versions = (1, 3)
    flexible = 2

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string.or_null(default="")
    resources: list[DescribeAclsResource] = array(DescribeAclsResource)

"""DescribeCluster: the cluster and its brokers."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.kafka.wire.fields import array, boolean, int8, int16, int32, string
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class DescribeClusterRequest(Message):
    """How much to tell about the cluster."""

    versions = (0, 2)
    flexible = 0

    include_cluster_authorized_operations: bool = boolean()
    endpoint_type: int = int8(default=1, since=1)
    include_fenced_brokers: bool = boolean(since=2)


@dataclass(slots=True)
class DescribeClusterBroker(Struct):
    broker_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string.or_null()
    is_fenced: bool = boolean(since=2)


@dataclass(slots=True)
class DescribeClusterResponse(Message):
    """The cluster's id, controller and brokers."""

    versions = (0, 2)
    flexible = 0

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string.or_null()
    endpoint_type: int = int8(default=1, since=1)
    cluster_id: str = string()
    controller_id: int = int32(default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker)
    cluster_authorized_operations: int = int32(default=-(2**31))

"""Metadata: which topics there are, and that this node leads them all; creates what is asked for and missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar
from uuid import UUID

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import LEADER_EPOCH
from penstock.kafka.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.queue.call import Call, change_catalog
from penstock.queue.core.catalog import NODE_ID, Topic, name_fault
from penstock.queue.core.catalog_changes import Change
from penstock.queue.handlers.create_topics import plan_topic


class _Partition(Protocol):
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]


_P = TypeVar("_P", bound=_Partition)


def led_here(blank: Callable[[], _P], indexes: Iterable[int]) -> list[_P]:
    """The partitions of these numbers in the form of one API, each made from `blank`."""
    partitions = []
    for index in indexes:
        partition = blank()
        partition.partition_index = index
        partition.leader_id = NODE_ID
        partition.leader_epoch = LEADER_EPOCH
        partition.replica_nodes = [NODE_ID]
        partition.isr_nodes = [NODE_ID]
        partitions.append(partition)
    return partitions


def absence_code(name: str) -> ErrorCode:
    """Why there is no topic of this name."""
    return ErrorCode.INVALID_TOPIC_EXCEPTION if name_fault(name) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


_NO_ID = UUID(int=0)


def handle_metadata(call: Call, request: MetadataRequest) -> None:
    missing = _missing_names(call, request)
    if not missing:
        call.reply(_describe(call, request))
        return

    def plan() -> list[Change]:
        changes: list[Change] = []
        for name in _missing_names(call, request):
            planned = plan_topic(call.host, name, call.host.config.default_partitions, {}, changes)
            if not isinstance(planned, tuple):
                changes.append(planned)
        return changes

    change_catalog(call, plan, lambda _: call.reply(_describe(call, request)))


def _missing_names(call: Call, request: MetadataRequest) -> list[str]:
    """Valid names of topics that do not exist and that this client may have created by asking."""
    if not (request.allow_auto_topic_creation and call.host.config.auto_create_topics and request.topics):
        return []
    names = dict.fromkeys(topic.name for topic in request.topics if topic.topic_id == _NO_ID)
    return [name for name in names if name and name not in call.host.catalog.topics and name_fault(name) is None]


def _describe(call: Call, request: MetadataRequest) -> MetadataResponse:
    catalog = call.host.catalog
    host, port = call.host.address
    wants_all = request.topics is None or (call.header.api_version == 0 and not request.topics)
    if wants_all:
        topics = [_topic(topic) for topic in catalog.topics.values()]
    else:
        topics = [_asked(call, asked) for asked in request.topics or ()]
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=NODE_ID, host=host, port=port)],
        cluster_id=catalog.cluster_id,
        controller_id=NODE_ID,
        topics=topics,
    )


def _asked(call: Call, asked: MetadataRequestTopic) -> MetadataResponseTopic:
    catalog = call.host.catalog
    if asked.topic_id != _NO_ID:
        topic = catalog.by_id(asked.topic_id)
        if topic is None:
            nameless = None if call.header.api_version >= 12 else ""
            return MetadataResponseTopic(ErrorCode.UNKNOWN_TOPIC_ID, nameless, asked.topic_id)
        return _topic(topic)
    name = asked.name or ""
    topic = catalog.topics.get(name)
    if topic is not None:
        return _topic(topic)
    return MetadataResponseTopic(error_code=absence_code(name), name=name)


def _topic(topic: Topic) -> MetadataResponseTopic:
    partitions = led_here(MetadataResponsePartition, range(topic.partitions))
    return MetadataResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions)

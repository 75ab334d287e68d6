"""Metadata: which topics there are, and that this node leads them all; creates what is asked for and missing."""

from __future__ import annotations

from uuid import UUID

from penstock.broker.call import Call, change_catalog
from penstock.broker.catalog import NODE_ID, Topic, name_fault
from penstock.broker.changes import Change
from penstock.broker.create_topics import plan_topic
from penstock.broker.leadership import absence_code, led_here
from penstock.errors import ErrorCode
from penstock.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

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

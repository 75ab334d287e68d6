"""OffsetDelete: forget positions in topics that a group does not read any more."""

from __future__ import annotations

from uuid import UUID

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from penstock.queue.call import Call
from penstock.queue.core.catalog import Topic
from penstock.queue.groups.classic.group import CONSUMER, Group
from penstock.queue.groups.consumer.group import ConsumerGroup


def handle_offset_delete(call: Call, request: OffsetDeleteRequest) -> None:
    group = call.groups.groups.get(request.group_id)
    newer = call.groups.consumers.groups.get(request.group_id)
    if group is None and newer is None:
        call.reply(OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
        return
    if group is not None and group.members and group.protocol_type != CONSUMER:
        call.reply(OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP))
        return
    gone: list[tuple[UUID, int]] = []
    response = OffsetDeleteResponse(topics=[_plan(call, group or newer, topic, gone) for topic in request.topics])

    def finish(code: ErrorCode) -> None:
        call.reply(OffsetDeleteResponse(error_code=code) if code else response)

    call.groups.forget(request.group_id, gone, finish, call.now_ms)


def _plan(
    call: Call,
    group: Group | ConsumerGroup | None,
    asked: OffsetDeleteRequestTopic,
    gone: list[tuple[UUID, int]],
) -> OffsetDeleteResponseTopic:
    topic = call.host.catalog.topics.get(asked.name)
    result = OffsetDeleteResponseTopic(asked.name)
    for partition in asked.partitions:
        index = partition.partition_index
        code = ErrorCode.NONE
        if topic is None or not 0 <= index < topic.partitions:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif _reads(group, topic):
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        else:
            gone.append((topic.topic_id, index))
        result.partitions.append(OffsetDeleteResponsePartition(index, code))
    return result


def _reads(group: Group | ConsumerGroup | None, topic: Topic) -> bool:
    if isinstance(group, ConsumerGroup):
        return group.is_subscribed(topic.topic_id)
    return group is not None and group.is_subscribed(topic.name)

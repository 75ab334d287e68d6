"""OffsetDelete: forget positions in topics that a group does not read any more."""

from __future__ import annotations

from uuid import UUID

from penstock.broker.call import Call
from penstock.broker.groups.group import CONSUMER, Group
from penstock.errors import ErrorCode
from penstock.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


def handle_offset_delete(call: Call, request: OffsetDeleteRequest) -> None:
    group = call.node.groups.groups.get(request.group_id)
    if group is None:
        call.reply(OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND))
        return
    if group.members and group.protocol_type != CONSUMER:
        call.reply(OffsetDeleteResponse(error_code=ErrorCode.NON_EMPTY_GROUP))
        return
    gone: list[tuple[UUID, int]] = []
    response = OffsetDeleteResponse(topics=[_plan(call, group, topic, gone) for topic in request.topics])

    def finish(code: ErrorCode) -> None:
        call.reply(OffsetDeleteResponse(error_code=code) if code else response)

    call.node.groups.forget(request.group_id, gone, finish, call.now_ms)


def _plan(
    call: Call, group: Group, asked: OffsetDeleteRequestTopic, gone: list[tuple[UUID, int]]
) -> OffsetDeleteResponseTopic:
    topic = call.node.catalog.topics.get(asked.name)
    result = OffsetDeleteResponseTopic(asked.name)
    for partition in asked.partitions:
        index = partition.partition_index
        code = ErrorCode.NONE
        if topic is None or not 0 <= index < topic.partitions:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        elif group.is_subscribed(asked.name):
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        else:
            gone.append((topic.topic_id, index))
        result.partitions.append(OffsetDeleteResponsePartition(index, code))
    return result

"""OffsetFetch: how far groups have come, as far as it is durable."""

from __future__ import annotations

from uuid import UUID

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from penstock.queue.call import Call
from penstock.queue.core.catalog import Topic
from penstock.queue.groups.changes import Position

_MANY_GROUPS, _BY_ID = 8, 10


def handle_offset_fetch(call: Call, request: OffsetFetchRequest) -> None:
    if call.header.api_version >= _MANY_GROUPS:
        call.reply(
            OffsetFetchResponse(groups=[_answer(call, group, request.require_stable) for group in request.groups])
        )
        return
    asked = OffsetFetchRequestGroup(request.group_id, topics=None)
    if request.topics is not None:
        asked.topics = [OffsetFetchRequestTopics(t.name, partition_indexes=t.partition_indexes) for t in request.topics]
    found = _answer(call, asked, request.require_stable)
    call.reply(OffsetFetchResponse(topics=[_as_old(topic) for topic in found.topics], error_code=found.error_code))


def _as_old(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic:
    partitions = [
        OffsetFetchResponsePartition(
            p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code
        )
        for p in topic.partitions
    ]
    return OffsetFetchResponseTopic(topic.name, partitions)


def _answer(call: Call, asked: OffsetFetchRequestGroup, is_stable: bool) -> OffsetFetchResponseGroup:
    answer = OffsetFetchResponseGroup(asked.group_id, error_code=_refuse(call, asked))
    if answer.error_code:
        return answer
    if asked.topics is None:
        answer.topics = _all_topics(call, asked.group_id)
    else:
        answer.topics = [_asked_topic(call, asked.group_id, topic) for topic in asked.topics]
    if is_stable:
        _hide_unstable(call, answer)
    return answer


def _refuse(call: Call, asked: OffsetFetchRequestGroup) -> ErrorCode:
    """Members of the newer protocol that name their epoch must have the right one."""
    group = call.groups.consumers.groups.get(asked.group_id)
    if group is None or (asked.member_id is None and asked.member_epoch < 0):
        return ErrorCode.NONE
    member = group.members.get(asked.member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return ErrorCode.NONE if member.epoch == asked.member_epoch else ErrorCode.STALE_MEMBER_EPOCH


def _hide_unstable(call: Call, answer: OffsetFetchResponseGroup) -> None:
    """Who asks for what is committed waits while a transaction may change it (KIP-447)."""
    table = call.groups.table
    if not table.is_held(answer.group_id):
        return
    for result in answer.topics:
        topic = call.host.catalog.by_id(result.topic_id) or call.host.catalog.topics.get(result.name)
        for at, found in enumerate(result.partitions):
            if topic is not None and table.is_unstable(answer.group_id, topic.topic_id, found.partition_index):
                code = ErrorCode.UNSTABLE_OFFSET_COMMIT
                result.partitions[at] = _partition(found.partition_index, None, code)


def _asked_topic(call: Call, group_id: str, asked: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    catalog = call.host.catalog
    by_id = call.header.api_version >= _BY_ID
    topic = catalog.by_id(asked.topic_id) if by_id else catalog.topics.get(asked.name)
    result = OffsetFetchResponseTopics(asked.name, asked.topic_id)
    for index in asked.partition_indexes:
        position = None if topic is None else call.groups.table.position(group_id, topic.topic_id, index)
        code = ErrorCode.UNKNOWN_TOPIC_ID if by_id and topic is None else ErrorCode.NONE
        result.partitions.append(_partition(index, position, code))
    return result


def _all_topics(call: Call, group_id: str) -> list[OffsetFetchResponseTopics]:
    results: dict[UUID, OffsetFetchResponseTopics] = {}
    for (topic_id, index), position in call.groups.table.positions.get(group_id, {}).items():
        topic: Topic | None = call.host.catalog.by_id(topic_id)
        if topic is None:
            continue  # deleted; what was known of it is about to be forgotten
        if topic_id not in results:
            results[topic_id] = OffsetFetchResponseTopics(topic.name, topic_id)
        results[topic_id].partitions.append(_partition(index, position, ErrorCode.NONE))
    return list(results.values())


def _partition(index: int, position: Position | None, code: ErrorCode) -> OffsetFetchResponsePartitions:
    if position is None:
        return OffsetFetchResponsePartitions(index, -1, -1, "", code)
    return OffsetFetchResponsePartitions(index, position.offset, position.leader_epoch, position.metadata, code)

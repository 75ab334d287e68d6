"""OffsetCommit: keep how far a group has come; answered when it is durable."""

from __future__ import annotations

from uuid import UUID

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.queue.call import Call
from penstock.queue.core.catalog import Topic
from penstock.queue.groups.changes import Position
from penstock.queue.groups.table import POSITION_BYTES

_NO_RETENTION = -1
_SAYS_NOT_FOUND, _BY_ID = 9, 10


def handle_offset_commit(call: Call, request: OffsetCommitRequest) -> None:
    groups = call.groups
    refused = groups.refuse_commit(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        request.generation_id_or_member_epoch,
        call.now_ms,
        knows_epochs=call.header.api_version >= _SAYS_NOT_FOUND,
    )
    if refused is ErrorCode.GROUP_ID_NOT_FOUND and call.header.api_version < _SAYS_NOT_FOUND:
        refused = ErrorCode.ILLEGAL_GENERATION
    expires_ms = None if request.retention_time_ms == _NO_RETENTION else call.now_ms + request.retention_time_ms
    positions: list[Position] = []
    response = OffsetCommitResponse()
    for topic in request.topics:
        result = OffsetCommitResponseTopic(topic.name, topic.topic_id)
        response.topics.append(result)
        known = _find(call, topic)
        for asked in topic.partitions:
            code = refused or _refuse(call, request.group_id, topic, known, asked)
            result.partitions.append(OffsetCommitResponsePartition(asked.partition_index, code))
            if not code and known is not None:
                positions.append(_position(known.topic_id, asked, call.now_ms, expires_ms))

    def finish(code: ErrorCode) -> None:
        for result in response.topics if code else ():
            for partition in result.partitions:
                partition.error_code = partition.error_code or code
        call.reply(response)

    if positions:
        groups.commit(request.group_id, positions, finish, call.now_ms)
    else:
        finish(ErrorCode.NONE)


def _find(call: Call, topic: OffsetCommitRequestTopic) -> Topic | None:
    catalog = call.host.catalog
    return catalog.by_id(topic.topic_id) if call.header.api_version >= _BY_ID else catalog.topics.get(topic.name)


def _refuse(
    call: Call,
    group_id: str,
    topic: OffsetCommitRequestTopic,
    known: Topic | None,
    asked: OffsetCommitRequestPartition,
) -> ErrorCode:
    if known is None:
        by_id = call.header.api_version >= _BY_ID
        return ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not 0 <= asked.partition_index < known.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    config, table = call.host.config, call.groups.table
    size = len(asked.committed_metadata or "")
    if size > config.offset_metadata_bytes_max:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    before = table.position(group_id, known.topic_id, asked.partition_index)
    grows = before is None or size > len(before.metadata)
    if grows and table.bytes + size + POSITION_BYTES > config.group_bytes_max:
        return ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    return ErrorCode.NONE


def _position(topic_id: UUID, asked: OffsetCommitRequestPartition, now_ms: int, expires_ms: int | None) -> Position:
    return Position(
        topic_id,
        asked.partition_index,
        asked.committed_offset,
        asked.committed_leader_epoch,
        asked.committed_metadata or "",
        now_ms,
        expires_ms,
    )

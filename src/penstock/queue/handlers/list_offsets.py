"""ListOffsets: the ends of a log, or the first record at or after a time."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import LEADER_EPOCH
from penstock.kafka.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.queue.call import Call
from penstock.queue.core.partition import Partition
from penstock.queue.log.log import Log
from penstock.queue.log.reading import offset_for_time, offset_of_latest_time

LATEST, EARLIEST, LATEST_TIME, EARLIEST_LOCAL = -1, -2, -3, -4
_READ_COMMITTED = 1
_REMOTE = (-5, -6)  # tiered storage, of which there is none


def handle_list_offsets(call: Call, request: ListOffsetsRequest) -> None:
    response = ListOffsetsResponse()
    for topic in request.topics:
        known = call.host.catalog.topics.get(topic.name)
        answers = []
        for wanted in topic.partitions:
            answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
            answers.append(answer)
            if known is None:
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            partition = call.host.partition(known, wanted.partition_index, call.now_ms)
            if isinstance(partition, ErrorCode):
                answer.error_code = partition
            else:
                limit = partition.log.stable if request.isolation_level == _READ_COMMITTED else partition.log.visible
                _look_up(call, partition, limit.offset, wanted, answer)
        response.topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    call.reply(response)


def _look_up(
    call: Call,
    partition: Partition,
    end_offset: int,
    wanted: ListOffsetsPartition,
    answer: ListOffsetsPartitionResponse,
) -> None:
    if wanted.current_leader_epoch > LEADER_EPOCH:
        answer.error_code = ErrorCode.UNKNOWN_LEADER_EPOCH
        return
    try:
        found = _find(partition.log, wanted.timestamp, end_offset)
    except OSError as error:
        call.host.notes.note("error", "read failed", partition=partition.name, reason=str(error))
        answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return
    if found is not None:
        answer.timestamp, answer.offset = found
        # Versions before the fourth cannot say it, and what cannot be said is not encoded.
        if call.header.api_version >= 4:
            answer.leader_epoch = LEADER_EPOCH


def _find(log: Log, timestamp: int, end_offset: int) -> tuple[int, int] | None:
    if timestamp == LATEST:
        return -1, end_offset
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        return -1, log.start_offset
    if timestamp == LATEST_TIME:
        found = offset_of_latest_time(log)
    elif timestamp in _REMOTE:
        return None
    else:
        found = offset_for_time(log, timestamp)
    return found if found is not None and found[1] < end_offset else None

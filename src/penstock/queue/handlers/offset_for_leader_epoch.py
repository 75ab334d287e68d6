"""OffsetForLeaderEpoch: there is one epoch, and it ends where the log does."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import LEADER_EPOCH
from penstock.kafka.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from penstock.queue.call import Call


def handle_offset_for_leader_epoch(call: Call, request: OffsetForLeaderEpochRequest) -> None:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        known = call.host.catalog.topics.get(topic.topic)
        results = []
        for asked in topic.partitions:
            result = EpochEndOffset(partition=asked.partition)
            results.append(result)
            if known is None:
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            partition = call.host.partition(known, asked.partition, call.now_ms)
            if isinstance(partition, ErrorCode):
                result.error_code = partition
            elif asked.current_leader_epoch > LEADER_EPOCH:
                result.error_code = ErrorCode.UNKNOWN_LEADER_EPOCH
            elif asked.leader_epoch == LEADER_EPOCH:
                result.leader_epoch = LEADER_EPOCH
                result.end_offset = partition.log.visible.offset
        response.topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=results))
    call.reply(response)

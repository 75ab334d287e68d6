"""DeleteRecords: move the start of a log forward, durably."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from penstock.queue.call import Call, change_catalog
from penstock.queue.core.catalog_changes import Change, StartMoved

_TO_THE_END = -1


def handle_delete_records(call: Call, request: DeleteRecordsRequest) -> None:
    response = DeleteRecordsResponse()

    def plan() -> list[Change]:
        changes: list[Change] = []
        for topic in request.topics:
            results = [_plan(call, topic.name, asked, changes) for asked in topic.partitions]
            response.topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
        return changes

    def finish(code: ErrorCode) -> None:
        for topic in response.topics:
            for result in topic.partitions:
                if code and not result.error_code:
                    result.error_code, result.low_watermark = code, -1
        call.reply(response)

    change_catalog(call, plan, finish)


def _plan(call: Call, name: str, asked: DeleteRecordsPartition, changes: list[Change]) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=-1)
    topic = call.host.catalog.topics.get(name)
    if topic is None:
        result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return result
    partition = call.host.partition(topic, asked.partition_index, call.now_ms)
    if isinstance(partition, ErrorCode):
        result.error_code = partition
        return result
    log = partition.log
    offset = log.visible.offset if asked.offset == _TO_THE_END else asked.offset
    if not 0 <= offset <= log.visible.offset:
        result.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
        return result
    # Retention may have moved the start in memory only: what was asked for must hold after a power cut, too.
    if offset > max(log.segments[0].base_offset, topic.starts.get(asked.partition_index, 0)):
        changes.append(StartMoved(topic.topic_id, asked.partition_index, offset))
    result.low_watermark = max(offset, log.start_offset)
    return result

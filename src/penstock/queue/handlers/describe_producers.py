"""DescribeProducers: who writes to a partition, and which transactions stand open there."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.describe_producers import (
    DescribeProducersPartitionResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResponse,
    ProducerState,
)
from penstock.queue.call import Call
from penstock.queue.core.partition import Partition

_NO_SEQUENCE = _NO_COORDINATOR = -1


def handle_describe_producers(call: Call, request: DescribeProducersRequest) -> None:
    response = DescribeProducersResponse()
    for topic in request.topics:
        result = DescribeProducersTopicResponse(topic.name)
        response.topics.append(result)
        known = call.host.catalog.topics.get(topic.name)
        for index in topic.partition_indexes:
            partition = call.host.partition(known, index, call.now_ms) if known is not None else None
            if isinstance(partition, Partition):
                result.partitions.append(_describe(partition, index))
            else:
                code = partition or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                result.partitions.append(DescribeProducersPartitionResponse(index, code))
    call.reply(response)


def _describe(partition: Partition, index: int) -> DescribeProducersPartitionResponse:
    found = [
        ProducerState(
            producer_id,
            known.epoch,
            known.batches[-1].last_sequence if known.batches else _NO_SEQUENCE,
            known.seen_ms,
            _NO_COORDINATOR,
            known.first_offset,
        )
        for producer_id, known in partition.log.producers.known.items()
    ]
    return DescribeProducersPartitionResponse(index, active_producers=found)

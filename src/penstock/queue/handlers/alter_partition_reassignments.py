"""AlterPartitionReassignments: with one node, no replica moves."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from penstock.queue.call import Call
from penstock.queue.core.catalog import NODE_ID

_TEXTS = {
    ErrorCode.NONE: None,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such partition",
    ErrorCode.NO_REASSIGNMENT_IN_PROGRESS: "it does not move",
    ErrorCode.INVALID_REPLICA_ASSIGNMENT: f"there is one broker, {NODE_ID}",
}


def handle_alter_partition_reassignments(call: Call, request: AlterPartitionReassignmentsRequest) -> None:
    topics = call.host.catalog.topics
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, error_message=None
    )
    for asked in request.topics:
        known = topics.get(asked.name)
        count = known.partitions if known is not None else 0
        codes = [(partition.partition_index, _code(partition, count)) for partition in asked.partitions]
        results = [ReassignablePartitionResponse(index, code, _TEXTS[code]) for index, code in codes]
        response.responses.append(ReassignableTopicResponse(asked.name, results))
    call.reply(response)


def _code(partition: ReassignablePartition, count: int) -> ErrorCode:
    if not 0 <= partition.partition_index < count:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if partition.replicas is None:
        return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    return ErrorCode.NONE if partition.replicas == [NODE_ID] else ErrorCode.INVALID_REPLICA_ASSIGNMENT

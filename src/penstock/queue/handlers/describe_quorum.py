"""DescribeQuorum: the metadata log has one keeper, this node."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import LEADER_EPOCH
from penstock.kafka.wire.fields import NO_UUID
from penstock.kafka.wire.messages.describe_quorum import (
    DescribeQuorumListener,
    DescribeQuorumNode,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartition,
    DescribeQuorumResponseTopic,
    ReplicaState,
)
from penstock.queue.call import Call
from penstock.queue.core.catalog import NODE_ID

_METADATA_LOG = "__cluster_metadata"


def handle_describe_quorum(call: Call, request: DescribeQuorumRequest) -> None:
    response = DescribeQuorumResponse()
    for topic in request.topics:
        partitions = [_describe(call, topic.topic_name, asked.partition_index) for asked in topic.partitions]
        response.topics.append(DescribeQuorumResponseTopic(topic.topic_name, partitions))
    is_known = any(partition.current_voters for topic in response.topics for partition in topic.partitions)
    if is_known and call.header.api_version >= 2:
        response.nodes = [DescribeQuorumNode(NODE_ID, [DescribeQuorumListener("PLAINTEXT", *call.host.address)])]
    call.reply(response)


def _describe(call: Call, topic: str, index: int) -> DescribeQuorumResponsePartition:
    if (topic, index) != (_METADATA_LOG, 0):
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return DescribeQuorumResponsePartition(index, code, f"{_METADATA_LOG} alone, partition 0, has a quorum")
    log, now_ms = call.host.changes.partition.log, call.now_ms
    keeper = ReplicaState(NODE_ID, NO_UUID, log.written.offset, now_ms, now_ms)
    return DescribeQuorumResponsePartition(
        leader_id=NODE_ID,
        leader_epoch=LEADER_EPOCH,
        high_watermark=log.visible.offset,
        current_voters=[keeper],
    )

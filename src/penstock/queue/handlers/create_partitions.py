"""CreatePartitions: a topic can grow, never shrink."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from penstock.queue.call import Call, answer_change, change_catalog
from penstock.queue.core.catalog import NODE_ID
from penstock.queue.core.catalog_changes import Change, PartitionsAdded


def handle_create_partitions(call: Call, request: CreatePartitionsRequest) -> None:
    response = CreatePartitionsResponse()

    def plan() -> list[Change]:
        changes: list[Change] = []
        for asked in request.topics:
            result = CreatePartitionsTopicResult(name=asked.name)
            response.results.append(result)
            refused = _plan(call, asked, changes)
            if refused is not None:
                result.error_code, result.error_message = refused
        return [] if request.validate_only else changes

    change_catalog(call, plan, answer_change(call, response))


def _plan(call: Call, asked: CreatePartitionsTopic, changes: list[Change]) -> tuple[ErrorCode, str] | None:
    host = call.host
    topic = host.catalog.topics.get(asked.name)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic"
    if any(isinstance(c, PartitionsAdded) and c.topic_id == topic.topic_id for c in changes):
        return ErrorCode.INVALID_REQUEST, "named twice in one request"
    if asked.count == topic.partitions:
        return ErrorCode.INVALID_PARTITIONS, f"Topic already has {topic.partitions} partition(s)."
    if asked.count < topic.partitions:
        higher = f"which is higher than the requested {asked.count}: their number can only grow."
        return ErrorCode.INVALID_PARTITIONS, f"The topic currently has {topic.partitions} partition(s), {higher}"
    added = asked.count - topic.partitions
    if asked.assignments is not None and (
        len(asked.assignments) != added or any(a.broker_ids != [NODE_ID] for a in asked.assignments)
    ):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, "this broker is the only replica of every partition"
    planned = sum(_added(call, change) for change in changes)
    if host.catalog.partition_count + planned + added > host.config.partitions_max:
        limit = host.config.partitions_max
        return ErrorCode.POLICY_VIOLATION, f"this broker allows {limit} partitions in all (partitions_max)"
    changes.append(PartitionsAdded(topic.topic_id, asked.count))
    return None


def _added(call: Call, change: Change) -> int:
    topic = call.host.catalog.by_id(change.topic_id) if isinstance(change, PartitionsAdded) else None
    return change.partitions - topic.partitions if topic and isinstance(change, PartitionsAdded) else 0

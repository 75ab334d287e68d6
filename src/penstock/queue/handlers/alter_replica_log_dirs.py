"""AlterReplicaLogDirs: every partition is in the one data folder, and may be told to stay."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from penstock.queue.call import Call


def handle_alter_replica_log_dirs(call: Call, request: AlterReplicaLogDirsRequest) -> None:
    """A folder is known by the name under which DescribeLogDirs tells it."""
    topics = call.host.catalog.topics
    response = AlterReplicaLogDirsResponse()
    for folder in request.dirs:
        is_ours = folder.path == call.host.config.data
        for asked in folder.topics:
            known = topics.get(asked.name)
            count = known.partitions if known is not None else 0
            results = [
                AlterReplicaLogDirPartitionResult(index, _code(is_ours, index, count)) for index in asked.partitions
            ]
            response.results.append(AlterReplicaLogDirTopicResult(asked.name, results))
    call.reply(response)


def _code(is_ours: bool, index: int, count: int) -> ErrorCode:
    if not is_ours:
        return ErrorCode.LOG_DIR_NOT_FOUND
    return ErrorCode.NONE if 0 <= index < count else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

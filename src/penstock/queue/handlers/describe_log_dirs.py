"""DescribeLogDirs: the data folder, and how much of it each partition takes."""

from __future__ import annotations

from contextlib import suppress

from penstock.kafka.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from penstock.queue.call import Call
from penstock.queue.core.catalog import Topic
from penstock.queue.log.layout import LOG, base_offsets, file_name, partition_folder


def handle_describe_log_dirs(call: Call, request: DescribeLogDirsRequest) -> None:
    catalog = call.host.catalog
    if request.topics is None:
        wanted = [(topic, list(range(topic.partitions))) for topic in catalog.topics.values()]
    else:
        asked = [(catalog.topics.get(each.topic), each.partitions) for each in request.topics]
        wanted = [(topic, indexes) for topic, indexes in asked if topic is not None]
    topics = []
    for topic, indexes in wanted:
        sizes = [(index, _size(call, topic, index)) for index in indexes if 0 <= index < topic.partitions]
        partitions = [DescribeLogDirsPartition(index, size) for index, size in sizes]
        if partitions:
            topics.append(DescribeLogDirsTopic(topic.name, partitions))
    call.reply(DescribeLogDirsResponse(results=[DescribeLogDirsResult(log_dir=call.host.config.data, topics=topics)]))


def _size(call: Call, topic: Topic, index: int) -> int:
    """What the segments of a partition take; one that is not open is not opened for this."""
    partition = call.host.partitions.open.get((topic.raw_id, index))
    if partition is not None:
        return sum(segment.end for segment in partition.log.segments)
    disk, folder = call.host.partitions.disk, partition_folder(topic.topic_id, index)
    size = 0
    with suppress(OSError):
        for base in base_offsets(disk.names(folder), LOG):
            file = disk.open(f"{folder}/{file_name(base, LOG)}")
            size += file.size()
            file.close()
    return size

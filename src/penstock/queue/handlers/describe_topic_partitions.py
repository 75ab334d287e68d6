"""DescribeTopicPartitions: topics in the order of their names, a page at a time."""

from __future__ import annotations

from functools import partial

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsCursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from penstock.queue.call import Call
from penstock.queue.core.catalog import Topic
from penstock.queue.handlers.metadata import absence_code, led_here

_PAGE_MAX = 2_000  # as Kafka's max.request.partition.size.limit
_ALLOWED = sum(1 << operation for operation in (3, 4, 5, 6, 7, 8, 10, 11))  # all that Kafka has for topics


def handle_describe_topic_partitions(call: Call, request: DescribeTopicPartitionsRequest) -> None:
    topics = call.host.catalog.topics
    named = {topic.name for topic in request.topics}
    begin = request.cursor or DescribeTopicPartitionsCursor()
    if begin.partition_index < 0 or (named and request.cursor is not None and begin.topic_name not in named):
        refused = [DescribeTopicPartitionsResponseTopic(ErrorCode.INVALID_REQUEST, name) for name in sorted(named)]
        call.reply(DescribeTopicPartitionsResponse(topics=refused))
        return
    left = max(1, min(request.response_partition_limit, _PAGE_MAX))
    response = DescribeTopicPartitionsResponse()
    for name in sorted(name for name in named or topics.keys() if name >= begin.topic_name):
        first = begin.partition_index if name == begin.topic_name else 0
        if left <= 0:
            response.next_cursor = DescribeTopicPartitionsCursor(name, first)
            break
        known = topics.get(name)
        if known is None:
            response.topics.append(_unknown(name))
            continue
        until = min(first + left, known.partitions)
        response.topics.append(_page(known, first, until))
        left -= max(until - first, 0)
        if until < known.partitions:
            response.next_cursor = DescribeTopicPartitionsCursor(name, until)
            break
    call.reply(response)


def _unknown(name: str) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(absence_code(name), name, topic_authorized_operations=_ALLOWED)


def _page(topic: Topic, first: int, until: int) -> DescribeTopicPartitionsResponseTopic:
    blank = partial(DescribeTopicPartitionsResponsePartition, eligible_leader_replicas=[], last_known_elr=[])
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=led_here(blank, range(first, until)),
        topic_authorized_operations=_ALLOWED,
    )

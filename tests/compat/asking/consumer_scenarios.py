"""The same questions about groups of the newer protocol, and about log folders, at every version."""

from __future__ import annotations

import time

from asking.batches import batch_of, lines
from asking.connection import DEADLINE_S, Connection, Patient
from asking.groups import form
from asking.requests import create_topic, produce
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from penstock.kafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from penstock.kafka.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)

ME = "AAAAAAAAAAAAAAAAAAAAAQ"


def newcomer(group: str, topic: str, member_id: str = ME) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group, member_id, 0, rebalance_timeout_ms=60_000, subscribed_topic_names=[topic], topic_partitions=[]
    )


def join_assigned(
    asking: Patient, version: int, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    """Join as the only member, and heartbeat until partitions are assigned; the answer that assigns them.

    Kafka 4.3 computes assignments in a thread of their own (group.consumer.assignor.offload.enable). A heartbeat
    that is answered before that thread has ended carries an empty assignment.
    """
    answer = asking.ask(request, version, ConsumerGroupHeartbeatResponse)
    deadline = time.monotonic() + DEADLINE_S
    while not answer.error_code and not (answer.assignment and answer.assignment.topic_partitions):
        assert time.monotonic() < deadline, answer
        again = ConsumerGroupHeartbeatRequest(request.group_id, answer.member_id or "", answer.member_epoch)
        answer = asking.ask(again, version, ConsumerGroupHeartbeatResponse)
    return answer


def ask_consumer_group_heartbeat(connection: Connection, version: int, topic: str) -> list[Message]:
    """A life: join, beat, wrong epochs, a second member, leave; and what is no heartbeat at all."""
    asking = Patient(connection)
    topic_id = create_topic(connection, topic, 4)
    group = topic
    answers: list[Message] = []

    def keep(answer: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        for part in answer.assignment.topic_partitions if answer.assignment else ():
            assert part.topic_id == topic_id
        answers.append(answer)
        return answer

    def ask(request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        return keep(asking.ask(request, version, ConsumerGroupHeartbeatResponse))

    ask(newcomer("", topic))
    keep(join_assigned(asking, version, newcomer(group, topic, "")))
    wrong = newcomer(group, topic)
    wrong.rebalance_timeout_ms = -1
    ask(wrong)
    wrong = newcomer(group, topic)
    wrong.topic_partitions = None
    ask(wrong)
    wrong = newcomer(group, topic)
    wrong.subscribed_topic_names = []
    ask(wrong)
    wrong = newcomer(group, topic)
    wrong.server_assignor = "no-such"
    ask(wrong)
    ask(ConsumerGroupHeartbeatRequest(f"{group}-2", ME, 3))
    joined = keep(join_assigned(asking, version, newcomer(f"{group}-3", topic)))
    ask(ConsumerGroupHeartbeatRequest(f"{group}-3", ME, joined.member_epoch))
    ask(ConsumerGroupHeartbeatRequest(f"{group}-3", ME, joined.member_epoch + 1))
    ask(ConsumerGroupHeartbeatRequest(f"{group}-3", "nobody", 1))
    ask(ConsumerGroupHeartbeatRequest(f"{group}-3", ME, -2))
    has = [TopicPartitions(topic_id, [0, 1, 2, 3])]
    full = newcomer(f"{group}-3", topic)
    full.member_epoch, full.topic_partitions = joined.member_epoch, has
    ask(full)
    ask(newcomer(f"{group}-3", topic, "AAAAAAAAAAAAAAAAAAAAAg"))
    ask(ConsumerGroupHeartbeatRequest(f"{group}-3", ME, -1))
    ask(ConsumerGroupHeartbeatRequest(f"{group}-3", ME, -1))
    form(asking, f"{group}-classic", protocol_type="connect")
    ask(newcomer(f"{group}-classic", topic))
    if version >= 1:
        pattern = newcomer(f"{group}-4", topic)
        pattern.subscribed_topic_names, pattern.subscribed_topic_regex = None, "(("
        ask(pattern)
    return answers


def ask_consumer_group_describe(connection: Connection, version: int, topic: str) -> list[Message]:
    """A group with a member, a classic one, and one that nobody knows."""
    asking = Patient(connection)
    create_topic(connection, topic, 2)
    form(asking, f"{topic}-classic")
    join_assigned(asking, 1, newcomer(topic, topic))
    names = [topic, f"{topic}-classic", f"{topic}-unknown"]
    return [asking.ask(ConsumerGroupDescribeRequest(names), version, ConsumerGroupDescribeResponse)]


def ask_describe_log_dirs(connection: Connection, version: int, topic: str) -> list[Message]:
    """A topic with a batch, a partition that is not there, a topic that is not there."""
    create_topic(connection, topic, 2)
    produce(connection, topic, batch_of(lines("one")))
    wanted = [DescribableLogDirTopic(topic, [0, 1, 7]), DescribableLogDirTopic(f"{topic}-unknown", [0])]
    answers: list[Message] = []
    for topics in (wanted, None):
        answer = connection.ask(DescribeLogDirsRequest(topics), version, DescribeLogDirsResponse)
        for result in answer.results:
            result.topics = [each for each in result.topics if each.name == topic]
        answers.append(answer)
    return answers

"""The same questions about leaders, replicas and the metadata log at every version: one node, nothing moves."""

from __future__ import annotations

from asking.connection import Connection
from asking.requests import create_topic
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from penstock.kafka.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from penstock.kafka.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from penstock.kafka.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartition,
    DescribeQuorumRequestTopic,
    DescribeQuorumResponse,
)
from penstock.kafka.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsCursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsTopic,
)
from penstock.kafka.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse, ElectLeadersTopic
from penstock.kafka.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from penstock.kafka.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)

MISSING = "missing-for-ever"
_BROKER_LOGGER = 8


def ask_elect_leaders(connection: Connection, version: int, topic: str) -> list[Message]:
    """Partitions that are led, ones that are not there, all of them; an election of no known kind."""
    create_topic(connection, topic, partitions=2)
    questions = [([ElectLeadersTopic(topic, [0, 1, 7]), ElectLeadersTopic(MISSING, [0])], 0), ([], 0), (None, 0)]
    if version >= 1:
        questions += [([ElectLeadersTopic(topic, [0])], 1), ([ElectLeadersTopic(topic, [0])], 9)]
    answers = []
    for topics, kind in questions:
        answer = connection.ask(ElectLeadersRequest(kind, topics, 10_000), version, ElectLeadersResponse)
        answer.replica_election_results = [
            each for each in answer.replica_election_results if each.topic in (topic, MISSING)
        ]
        answers.append(answer)
    return list[Message](answers)


def ask_alter_reassignments(connection: Connection, version: int, topic: str) -> list[Message]:
    """To where it is, back from nowhere, to brokers that are not there, twice to one, to none; no such partition."""
    create_topic(connection, topic)
    wanted = [(topic, 0, [1]), (topic, 0, None), (topic, 0, [99]), (topic, 0, [1, 99]), (topic, 0, [1, 1])]
    wanted += [(topic, 0, []), (topic, 0, [-1]), (topic, 7, [1]), (MISSING, 0, [1]), (MISSING, 0, None)]
    answers: list[Message] = []
    for name, index, replicas in wanted:
        topics = [ReassignableTopic(name, [ReassignablePartition(index, replicas)])]
        request = AlterPartitionReassignmentsRequest(10_000, topics=topics)
        answers.append(connection.ask(request, version, AlterPartitionReassignmentsResponse))
    return answers


def ask_list_reassignments(connection: Connection, version: int, topic: str) -> list[Message]:
    """All, those of a topic, those of none."""
    create_topic(connection, topic)
    questions = [None, [], *([ListPartitionReassignmentsTopics(name, [0, 7])] for name in (topic, MISSING))]
    return [
        connection.ask(ListPartitionReassignmentsRequest(10_000, asked), version, ListPartitionReassignmentsResponse)
        for asked in questions
    ]


def ask_alter_log_dirs(connection: Connection, version: int, topic: str) -> list[Message]:
    """To the folder where it is, to one that is not there; a partition and a topic that are not."""
    create_topic(connection, topic)
    home = connection.ask(DescribeLogDirsRequest(None), 4, DescribeLogDirsResponse).results[0].log_dir
    answers: list[Message] = []
    for path, name, index in ((home, topic, 0), ("/nowhere", topic, 0), (home, topic, 7), (home, MISSING, 0)):
        request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(path, [AlterReplicaLogDirTopic(name, [index])])])
        answers.append(connection.ask(request, version, AlterReplicaLogDirsResponse))
    return answers


def ask_describe_quorum(connection: Connection, version: int, topic: str) -> list[Message]:
    """The metadata log; another partition of it, another topic, none."""
    answers: list[Message] = []
    for name, indexes in (("__cluster_metadata", [0]), ("__cluster_metadata", [1]), (topic, [0]), ("", [])):
        asked = DescribeQuorumRequestTopic(name, [DescribeQuorumRequestPartition(index) for index in indexes])
        request = DescribeQuorumRequest([asked] if name else [])
        answers.append(connection.ask(request, version, DescribeQuorumResponse))
    return answers


def ask_list_config_resources(connection: Connection, version: int, topic: str) -> list[Message]:
    """Topics, brokers, metrics of clients, groups, all, a type that nobody knows; other tests' topics are left out."""
    create_topic(connection, topic)
    answers = []
    for types in ([2], [4], [16], [32], [], [3]) if version >= 1 else ([],):
        answer = connection.ask(ListConfigResourcesRequest(types), version, ListConfigResourcesResponse)
        # Kafka lists its loggers, which can be set by this call's sister; ours cannot.
        answer.config_resources = [
            each
            for each in answer.config_resources
            if each.resource_type != _BROKER_LOGGER and (each.resource_type != 2 or each.resource_name == topic)
        ]
        answers.append(answer)
    return list[Message](answers)


def ask_describe_topic_partitions(connection: Connection, version: int, topic: str) -> list[Message]:
    """Whole, page by page, beyond the end; names that are not there or cannot be; a cursor that fits nothing."""
    first, second = f"{topic}-1", f"{topic}-2"
    create_topic(connection, first, partitions=3)
    create_topic(connection, second, partitions=2)
    questions: list[tuple[list[str], int, tuple[str, int] | None]] = [
        ([second, first], 2_000, None),
        ([first, second], 2, None),
        ([first, second], 2, (first, 2)),
        ([first, second], 3, None),
        ([first, second], 10, (second, 1)),
        ([first], 10, (first, 3)),
        ([first], 10, (first, 9)),
        ([first, f"{first}-missing"], 3, None),
        ([MISSING, first], 1, None),
        ([first, "../x", "x" * 250, "."], 10, None),
        ([second], 10, (first, 0)),
        ([first], 10, (first, -1)),
        ([first], 0, None),
        ([first], -5, None),
        ([first, first], 10, None),
    ]
    return [
        connection.ask(
            DescribeTopicPartitionsRequest(
                [DescribeTopicPartitionsTopic(name) for name in names],
                limit,
                None if cursor is None else DescribeTopicPartitionsCursor(*cursor),
            ),
            version,
            DescribeTopicPartitionsResponse,
        )
        for names, limit, cursor in questions
    ]

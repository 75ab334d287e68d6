"""The same questions about topics, settings and the cluster at every version of an API."""

from __future__ import annotations

from uuid import UUID

from asking.connection import Connection
from asking.requests import create_topic
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.kafka.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from penstock.kafka.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from penstock.kafka.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from penstock.kafka.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from penstock.kafka.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from penstock.kafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.kafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

STRANGER = UUID(int=0x5EED)
SHARED_SETTINGS = [
    "cleanup.policy",
    "compression.type",
    "max.message.bytes",
    "message.timestamp.type",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.ms",
]
TOPIC = 2
_SET, _DELETE, _APPEND = 0, 1, 2


def ask_api_versions(connection: Connection, version: int, topic: str) -> list[Message]:
    """What is served, to a client that names itself and to one whose name is nonsense."""
    requests = [ApiVersionsRequest(client_software_name="compat", client_software_version="1.0")]
    if version >= 3:
        requests.append(ApiVersionsRequest(client_software_name="-no name-", client_software_version="1.0"))
    return [connection.ask(request, version, ApiVersionsResponse) for request in requests]


def ask_metadata(connection: Connection, version: int, topic: str) -> list[Message]:
    """A topic by name, and by id where that goes; unknown and invalid ones; none at all."""
    topic_id = create_topic(connection, topic, partitions=2)
    asked = [MetadataRequestTopic(name=topic)]
    asked += [MetadataRequestTopic(name=name) for name in (".", "../x", "x" * 250, "")]
    if version >= 4:
        asked.append(MetadataRequestTopic(name=f"{topic}-missing"))
    questions = [asked]
    if version >= 12:
        questions.append([MetadataRequestTopic(name=None, topic_id=known) for known in (topic_id, STRANGER)])
    if version >= 1:
        questions.append([])
    return [
        connection.ask(MetadataRequest(topics=names, allow_auto_topic_creation=version < 4), version, MetadataResponse)
        for names in questions
    ]


def ask_create_topics(connection: Connection, version: int, topic: str) -> list[Message]:
    """Good ones, and every way to be refused."""

    def named(suffix: str, partitions: int = 1, replicas: int = 1, **settings: str | None) -> CreatableTopic:
        configs = [CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()]
        return CreatableTopic(
            name=topic + suffix, num_partitions=partitions, replication_factor=replicas, configs=configs
        )

    assigned = CreatableReplicaAssignment(partition_index=0, broker_ids=[1])
    stranger = CreatableReplicaAssignment(partition_index=0, broker_ids=[99])
    gap = CreatableReplicaAssignment(partition_index=1, broker_ids=[1])
    topics = [
        named("", partitions=3),
        named("-set", retention_ms="60000"),
        named("-no-partitions", partitions=0),
        named("-negative", partitions=-5),
        named("-replicas", replicas=2),
        named("-no-replicas", replicas=0),
        named("-unknown-setting", retention_mss="1"),
        named("-bad-setting", retention_ms="soon"),
        named("-low-setting", retention_ms="-2"),
        named("-null-setting", retention_ms=None),
        CreatableTopic(name="../../x", num_partitions=1, replication_factor=1),
        CreatableTopic(name=".", num_partitions=1, replication_factor=1),
        CreatableTopic(name="..", num_partitions=1, replication_factor=1),
        CreatableTopic(name="", num_partitions=1, replication_factor=1),
        CreatableTopic(name="nul\0byte", num_partitions=1, replication_factor=1),
        CreatableTopic(name="x" * 250, num_partitions=1, replication_factor=1),
        CreatableTopic(name="café", num_partitions=1, replication_factor=1),
        CreatableTopic(name=f"{topic}-assigned", num_partitions=-1, replication_factor=-1, assignments=[assigned]),
        CreatableTopic(name=f"{topic}-both", num_partitions=1, replication_factor=1, assignments=[assigned]),
        CreatableTopic(name=f"{topic}-stranger", num_partitions=-1, replication_factor=-1, assignments=[stranger]),
        CreatableTopic(name=f"{topic}-gap", num_partitions=-1, replication_factor=-1, assignments=[gap]),
    ]
    if version >= 4:
        topics.append(named("-defaults", partitions=-1, replicas=-1))
    answers: list[Message] = []
    for one in topics:
        request = CreateTopicsRequest(topics=[one], validate_only=one.name.endswith("-set"))
        answers.append(connection.ask(request, version, CreateTopicsResponse))
    for names in ([topic], [f"{topic}-twice", f"{topic}-twice"]):
        wanted = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        answers.append(connection.ask(CreateTopicsRequest(topics=wanted), version, CreateTopicsResponse))
    return answers


def ask_delete_topics(connection: Connection, version: int, topic: str) -> list[Message]:
    """By name, and by id where that goes; ones that are not there."""
    first, second = f"{topic}-1", f"{topic}-2"
    create_topic(connection, first)
    second_id = create_topic(connection, second)
    answers: list[Message] = []
    if version < 6:
        for names in ([first], [first], ["unknown"], [second, second], ["../x"]):
            request = DeleteTopicsRequest(topic_names=names, timeout_ms=10_000)
            answers.append(connection.ask(request, version, DeleteTopicsResponse))
        return answers
    for state in (
        DeleteTopicState(name=first),
        DeleteTopicState(name="unknown"),
        DeleteTopicState(name=None, topic_id=STRANGER),
        DeleteTopicState(name=second, topic_id=second_id),
        DeleteTopicState(name=None, topic_id=second_id),
        DeleteTopicState(name=None, topic_id=second_id),
    ):
        request = DeleteTopicsRequest(topics=[state], timeout_ms=10_000)
        answers.append(connection.ask(request, version, DeleteTopicsResponse))
    return answers


def ask_create_partitions(connection: Connection, version: int, topic: str) -> list[Message]:
    """More, as many, fewer; with an assignment; for a topic that is not there."""
    create_topic(connection, topic)
    one = CreatePartitionsAssignment(broker_ids=[1])
    topics = [
        CreatePartitionsTopic(name=topic, count=3, assignments=None),
        CreatePartitionsTopic(name=topic, count=3, assignments=None),
        CreatePartitionsTopic(name=topic, count=2, assignments=None),
        CreatePartitionsTopic(name=topic, count=0, assignments=None),
        CreatePartitionsTopic(name=topic, count=-1, assignments=None),
        CreatePartitionsTopic(name=topic, count=4, assignments=[one]),
        CreatePartitionsTopic(name=topic, count=5, assignments=[one, one]),
        CreatePartitionsTopic(name=topic, count=5, assignments=[CreatePartitionsAssignment(broker_ids=[99])]),
        CreatePartitionsTopic(name="unknown", count=3, assignments=None),
        CreatePartitionsTopic(name="../x", count=3, assignments=None),
    ]
    return [
        connection.ask(CreatePartitionsRequest(topics=[asked], timeout_ms=10_000), version, CreatePartitionsResponse)
        for asked in topics
    ]


def ask_describe_configs(connection: Connection, version: int, topic: str) -> list[Message]:
    """The settings both brokers have, one that was changed among them; a topic that is not there."""
    create_topic(connection, topic, configs={"retention.ms": "60000"})
    asked = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=SHARED_SETTINGS),
        DescribeConfigsResource(resource_type=TOPIC, resource_name="unknown", configuration_keys=None),
        DescribeConfigsResource(resource_type=TOPIC, resource_name="../x", configuration_keys=None),
        DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=["no.such"]),
        DescribeConfigsResource(resource_type=4, resource_name="99", configuration_keys=None),
        DescribeConfigsResource(resource_type=77, resource_name="x", configuration_keys=None),
    ]
    return [
        connection.ask(DescribeConfigsRequest(resources=[resource]), version, DescribeConfigsResponse)
        for resource in asked
    ]


def ask_alter_configs(connection: Connection, version: int, topic: str) -> list[Message]:
    """Set, unset, and every way to be refused."""
    create_topic(connection, topic)

    def alter(name: str, *changes: tuple[str, int, str | None], kind: int = TOPIC, dry: bool = False) -> Message:
        configs = [AlterableConfig(name=key, config_operation=how, value=value) for key, how, value in changes]
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=dry)
        return connection.ask(request, version, IncrementalAlterConfigsResponse)

    return [
        alter(topic, ("retention.ms", _SET, "60000")),
        alter(topic, ("retention.ms", _DELETE, None)),
        alter(topic, ("retention.ms", _SET, "soon")),
        alter(topic, ("retention.ms", _SET, None)),
        alter(topic, ("retention.mss", _SET, "1")),
        alter(topic, ("retention.mss", _DELETE, None)),
        alter(topic, ("retention.ms", _APPEND, "1")),
        alter(topic, ("retention.ms", _SET, "1"), ("retention.ms", _SET, "2")),
        alter(topic, ("retention.ms", _SET, "-2"), dry=True),
        alter("unknown", ("retention.ms", _SET, "1")),
        alter("../x", ("retention.ms", _SET, "1")),
        alter(topic, ("retention.ms", _SET, "1"), kind=77),
    ]


def ask_describe_cluster(connection: Connection, version: int, topic: str) -> list[Message]:
    """The brokers; the controllers are nobody's business."""
    requests = [DescribeClusterRequest()]
    if version >= 1:
        requests.append(DescribeClusterRequest(endpoint_type=2))
        requests.append(DescribeClusterRequest(endpoint_type=7))
    return [connection.ask(request, version, DescribeClusterResponse) for request in requests]


def ask_describe_acls(connection: Connection, version: int, topic: str) -> list[Message]:
    """All rules, as a console asks for them; neither broker keeps any."""
    anybody = DescribeAclsRequest(1, None, 1, None, None, 1, 1)
    return [connection.ask(anybody, version, DescribeAclsResponse)]

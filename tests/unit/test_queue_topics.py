"""Topics: created, grown, configured and deleted durably, or refused with the right code."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from stage.batches import batch
from stage.nodes import Stage, ack_of

from penstock.config.topic import TOPIC_SETTINGS
from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.kafka.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.kafka.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from penstock.kafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.kafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

TOPIC, BROKER, SET, DELETE, APPEND = 2, 4, 0, 1, 2


def create(stage: Stage, *topics: CreatableTopic, **options: Any) -> list[int]:
    version = options.pop("version", 7)
    return [topic.error_code for topic in stage.ask(CreateTopicsRequest(list(topics), **options), version).topics]


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_there_once_it_is_durable(version: int) -> None:
    """Not before its record in the metadata log is synced; and after a restart it is still there."""
    stage = Stage()
    stage.send(CreateTopicsRequest([CreatableTopic("rain", 3, 1)]), version)
    assert "rain" not in stage.node.catalog.topics
    assert stage.answers() == []
    stage.end_syncs()
    ((_, answer),) = stage.answers()
    assert answer.topics[0].error_code == 0
    again = Stage(stage.disk)
    assert again.node.catalog.topics["rain"].partitions == 3
    assert again.node.catalog.topics["rain"].topic_id == stage.node.catalog.topics["rain"].topic_id
    assert again.node.catalog.cluster_id == stage.node.catalog.cluster_id


@pytest.mark.parametrize(
    ("topic", "code"),
    [
        (CreatableTopic("", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic(".", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("..", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("../../x", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("a\0b", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("é", 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("x" * 250, 1, 1), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (CreatableTopic("rain", 1, 1), ErrorCode.TOPIC_ALREADY_EXISTS),
        (CreatableTopic("new", 0, 1), ErrorCode.INVALID_PARTITIONS),
        (CreatableTopic("new", -2, 1), ErrorCode.INVALID_PARTITIONS),
        (CreatableTopic("new", 1, 3), ErrorCode.INVALID_REPLICATION_FACTOR),
        (CreatableTopic("new", 1, 1, [], [CreatableTopicConfig("retention.mss", "1")]), ErrorCode.INVALID_CONFIG),
        (CreatableTopic("new", 1, 1, [], [CreatableTopicConfig("retention.ms", "soon")]), ErrorCode.INVALID_CONFIG),
        (CreatableTopic("new", 1, 1, [], [CreatableTopicConfig("retention.ms", None)]), ErrorCode.INVALID_CONFIG),
        (CreatableTopic("new", 1, 1, [], [CreatableTopicConfig("x" * 30_000, "1")]), ErrorCode.INVALID_CONFIG),
        (
            CreatableTopic("new", 1, 1, [], [CreatableTopicConfig(f"{n}{'x' * 200}", "1") for n in range(500)]),
            ErrorCode.INVALID_CONFIG,
        ),
        (CreatableTopic("new", -1, -1, [CreatableReplicaAssignment(0, [7])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("new", -1, -1, [CreatableReplicaAssignment(1, [1])]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (CreatableTopic("new", 2, 1, [CreatableReplicaAssignment(0, [1])]), ErrorCode.INVALID_REQUEST),
        (CreatableTopic("new", 2**31 - 1, 1), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_what_cannot_be_a_topic_is_refused(topic: CreatableTopic, code: ErrorCode) -> None:
    """And leaves nothing behind, neither in the catalog nor on the disk."""
    stage = Stage()
    stage.topic()
    before = stage.disk.names("topics")
    assert create(stage, topic, version=4) == [code]
    assert (list(stage.node.catalog.topics), stage.disk.names("topics")) == (["rain"], before)


def test_names_of_every_allowed_kind_and_length_are_taken() -> None:
    stage = Stage()
    assert create(stage, CreatableTopic("x" * 249, -1, -1), CreatableTopic("A-b_c.9", 2, 1)) == [0, 0]
    assert create(stage, CreatableTopic("by.hand", -1, -1, [CreatableReplicaAssignment(0, [1])])) == [0]


def test_a_name_given_twice_is_refused_and_a_trial_creates_nothing() -> None:
    stage = Stage()
    assert create(stage, CreatableTopic("a", 1, 1), CreatableTopic("a", 1, 1)) == [ErrorCode.INVALID_REQUEST]
    assert create(stage, CreatableTopic("a", 1, 1), validate_only=True) == [0]
    assert not stage.node.catalog.topics


def test_topics_and_partitions_are_bounded() -> None:
    """Over a limit there is a clean error; what is deleted makes room."""
    stage = Stage(topics_max=3, partitions_max=8)
    codes = create(stage, *(CreatableTopic(f"t{n}", 2, 1) for n in range(4)))
    assert codes == [0, 0, 0, ErrorCode.POLICY_VIOLATION]
    grow = CreatePartitionsRequest([CreatePartitionsTopic("t0", 5, None)])
    assert stage.ask(grow).results[0].error_code == ErrorCode.POLICY_VIOLATION
    stage.ask(DeleteTopicsRequest([DeleteTopicState("t1")]))
    assert stage.ask(grow).results[0].error_code == 0
    assert create(stage, CreatableTopic("big", 2, 1)) == [ErrorCode.POLICY_VIOLATION]


def test_asking_for_a_topic_creates_it_once() -> None:
    """auto_create_topics: by valid names only, if the client wants it, and one topic however often it is named."""
    stage = Stage(default_partitions=2)
    names = ["new", "new", "../bad", "rain"]
    stage.topic()
    asked = [MetadataRequestTopic(name=name) for name in names]
    answer = stage.ask(MetadataRequest(asked), 12)
    assert [topic.error_code for topic in answer.topics] == [0, 0, ErrorCode.INVALID_TOPIC_EXCEPTION, 0]
    assert stage.node.catalog.partition_count == 3
    assert len(stage.disk.names("topics")) == 2
    unknown = MetadataRequest([MetadataRequestTopic(name="other")], allow_auto_topic_creation=False)
    assert stage.ask(unknown, 12).topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    strict = Stage(auto_create_topics=False)
    answer = strict.ask(MetadataRequest([MetadataRequestTopic(name="other")]), 12)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", range(14))
def test_metadata_names_this_node_as_the_leader_of_all(version: int) -> None:
    stage = Stage()
    topic_id = stage.topic(partitions=2)
    answer = stage.ask(MetadataRequest(None if version else []), version)
    (topic,) = answer.topics
    assert [(part.partition_index, part.leader_id) for part in topic.partitions] == [(0, 1), (1, 1)]
    assert [(broker.host, broker.port) for broker in answer.brokers] == [("127.0.0.1", 9092)]
    assert topic.topic_id == (topic_id if version >= 10 else UUID(int=0))


@pytest.mark.parametrize("version", [10, 11, 12, 13])
def test_metadata_by_an_id_nobody_knows_is_answered(version: int) -> None:
    """Also where the answer cannot leave the name out."""
    stage = Stage()
    answer = stage.ask(MetadataRequest([MetadataRequestTopic(UUID(int=77), None)]), version)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert stage.closed == []


def test_a_topic_grows_and_never_shrinks() -> None:
    stage = Stage()
    stage.topic(partitions=2)

    def grown(count: int, assignments: Any = None, name: str = "rain") -> int:
        request = CreatePartitionsRequest([CreatePartitionsTopic(name, count, assignments)])
        code: int = stage.ask(request).results[0].error_code
        return code

    assert grown(4) == 0
    assert ack_of(stage.produce(partition=3)).base_offset == 0
    for count in (4, 3, 0, -1):
        assert grown(count) == ErrorCode.INVALID_PARTITIONS
    assert grown(5, name="fog") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert grown(5, [CreatePartitionsAssignment([9])]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert grown(5, [CreatePartitionsAssignment([1])]) == 0
    assert Stage(stage.disk).node.catalog.topics["rain"].partitions == 5


@pytest.mark.parametrize("by_id", [True, False])
def test_a_deleted_topic_is_gone_with_its_folder_and_its_name_is_free(by_id: bool) -> None:
    """A new topic of the same name is another topic, with offsets from 0."""
    stage = Stage()
    topic_id = stage.topic()
    stage.produce()
    state = DeleteTopicState(None, topic_id) if by_id else DeleteTopicState("rain")
    assert stage.ask(DeleteTopicsRequest([state])).responses[0].error_code == 0
    assert stage.disk.names("topics") == []
    assert ack_of(stage.produce()).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert stage.topic() != topic_id
    assert ack_of(stage.produce()).base_offset == 0


def test_what_cannot_be_deleted_is_refused() -> None:
    stage = Stage()
    topic_id = stage.topic()
    unknown = [DeleteTopicState("fog"), DeleteTopicState(None, UUID(int=5)), DeleteTopicState("rain", topic_id)]
    answer = stage.ask(DeleteTopicsRequest(unknown))
    codes = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INVALID_REQUEST]
    assert [result.error_code for result in answer.responses] == codes
    assert "rain" in stage.node.catalog.topics


def test_deleting_goes_on_when_the_disk_is_full() -> None:
    """A spare file gives the metadata log the room it needs."""
    stage = Stage()
    stage.topic()
    stage.produce(batch([b"x" * 1000]))
    stage.disk.faults.room = 0
    assert ack_of(stage.produce(batch([b"y" * 1000]))).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert stage.ask(DeleteTopicsRequest([DeleteTopicState("rain")])).responses[0].error_code == 0


def test_a_change_that_cannot_be_written_is_no_change() -> None:
    """Neither now nor after a restart."""
    stage = Stage()
    stage.send(CreateTopicsRequest([CreatableTopic("rain", 1, 1)]), 7)
    stage.end_syncs("Input/output error")
    ((_, answer),) = stage.answers()
    assert answer.topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not stage.node.catalog.topics
    assert create(stage, CreatableTopic("fog", 1, 1)) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert stage.node.stopped


def alter(stage: Stage, *changes: AlterableConfig, name: str = "rain", kind: int = TOPIC, **options: Any) -> int:
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, list(changes))], **options)
    code: int = stage.ask(request).responses[0].error_code
    return code


def described(stage: Stage, name: str = "rain", kind: int = TOPIC) -> dict[str, str | None]:
    answer = stage.ask(DescribeConfigsRequest([DescribeConfigsResource(kind, name, None)], True, True))
    assert answer.results[0].error_code == 0
    return {config.name: config.value for config in answer.results[0].configs}


def test_settings_change_while_a_topic_is_in_use() -> None:
    """Set, seen, used, removed again; and kept over a restart."""
    stage = Stage()
    stage.topic()
    stage.produce()
    assert described(stage) == {setting.name: setting.default for setting in TOPIC_SETTINGS.values()}
    assert alter(stage, AlterableConfig("max.message.bytes", SET, "100")) == 0
    assert described(stage)["max.message.bytes"] == "100"
    assert ack_of(stage.produce(batch([b"x" * 100]))).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert described(Stage(stage.disk))["max.message.bytes"] == "100"
    assert alter(stage, AlterableConfig("max.message.bytes", DELETE, None)) == 0
    assert ack_of(stage.produce(batch([b"x" * 100]))).error_code == 0


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (AlterableConfig("retention.mss", SET, "1"), ErrorCode.INVALID_CONFIG),
        (AlterableConfig("retention.ms", SET, "-2"), ErrorCode.INVALID_CONFIG),
        (AlterableConfig("retention.ms", APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (AlterableConfig("retention.ms", SET, None), ErrorCode.INVALID_REQUEST),
        (AlterableConfig("y" * 32_760, SET, "1"), ErrorCode.INVALID_CONFIG),
        (AlterableConfig("retention.ms", SET, "\x01" * 20_000), ErrorCode.INVALID_CONFIG),
    ],
)
def test_settings_that_make_no_sense_are_refused(change: AlterableConfig, code: ErrorCode) -> None:
    """In the old version too, whose texts have little room."""
    stage = Stage()
    stage.topic()
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(TOPIC, "rain", [change])])
    for version in (0, 1):
        assert stage.ask(request, version).responses[0].error_code == code
    assert stage.node.catalog.topics["rain"].overrides == {}


def test_settings_of_others_are_refused() -> None:
    stage = Stage()
    stage.topic()
    good = AlterableConfig("retention.ms", SET, "5")
    assert alter(stage, good, name="fog") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(stage, good, name="", kind=BROKER) == ErrorCode.INVALID_REQUEST
    assert alter(stage, good, good) == ErrorCode.INVALID_REQUEST
    assert alter(stage, good, validate_only=True) == 0
    assert stage.node.catalog.topics["rain"].overrides == {}


def test_the_settings_of_the_node_can_be_seen() -> None:
    stage = Stage(topics_max=77)
    seen = described(stage, "1", BROKER)
    assert seen["penstock.topics_max"] == "77"
    assert seen["num.partitions"] == str(stage.node.config.default_partitions)
    answer = stage.ask(DescribeConfigsRequest([DescribeConfigsResource(BROKER, "2", None)]))
    assert answer.results[0].error_code == ErrorCode.INVALID_REQUEST

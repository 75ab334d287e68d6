"""Offsets, deleted records and producer ids; and what a node knows after a restart."""

from __future__ import annotations

import pytest
from stage.batches import NOW_MS, batch, raw_batch, record
from stage.logs import cut
from stage.nodes import Stage, ack_of, records_of

from penstock.errors import ErrorCode, StorageError
from penstock.kafka.records.batch import decode_header
from penstock.kafka.wire.apis import APIS, ApiKey
from penstock.kafka.wire.messages.api_versions import ApiVersionsRequest
from penstock.kafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.kafka.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from penstock.kafka.wire.messages.describe_cluster import DescribeClusterRequest
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.kafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.kafka.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from proof.sim.disk import FakeDisk
from proof.sim.inode import Mood

LATEST, EARLIEST, LATEST_TIME = -1, -2, -3


def listed(stage: Stage, time: int, version: int = 7, topic: str = "rain", **options: int) -> tuple[int, int, int]:
    part = ListOffsetsPartition(options.get("partition", 0), options.get("epoch", -1), time)
    answer = stage.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(topic, [part])]), version)
    found = answer.topics[0].partitions[0]
    return found.error_code, found.offset, found.timestamp


def delete_records(stage: Stage, offset: int, topic: str = "rain", partition: int = 0) -> tuple[int, int]:
    part = DeleteRecordsTopic(topic, [DeleteRecordsPartition(partition, offset)])
    result = stage.ask(DeleteRecordsRequest([part])).topics[0].partitions[0]
    return result.error_code, result.low_watermark


@pytest.mark.parametrize("version", range(1, 12))
def test_offsets_are_listed_by_end_and_by_time(version: int) -> None:
    """At every version, exactly."""
    stage = Stage()
    stage.topic()
    stage.produce(batch([b"a", b"b"], stamps=[NOW_MS, NOW_MS + 9]), batch([b"c"], stamps=[NOW_MS + 4]))
    assert listed(stage, EARLIEST, version)[:2] == (0, 0)
    assert listed(stage, LATEST, version)[:2] == (0, 3)
    assert listed(stage, NOW_MS + 1, version) == (0, 1, NOW_MS + 9)
    assert listed(stage, NOW_MS + 99, version) == (0, -1, -1)
    assert listed(stage, LATEST_TIME, version) == (0, 1, NOW_MS + 9)


def test_what_cannot_be_listed_has_its_code() -> None:
    stage = Stage()
    stage.topic()
    assert listed(stage, LATEST, topic="fog")[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert listed(stage, LATEST, partition=3)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert listed(stage, LATEST, epoch=4)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
    stage.produce(batch(stamps=[NOW_MS]))
    stage.disk.faults.rates = {"read": 1.0}
    assert listed(stage, NOW_MS)[0] == ErrorCode.KAFKA_STORAGE_ERROR


def test_records_that_lie_about_their_time_cost_nobody_an_answer() -> None:
    """The broker does not open batches it stores; when it must, it believes nothing."""
    stage = Stage()
    stage.topic()
    stage.produce(raw_batch(record(0, 2**62, None, b"v"), 1), raw_batch(record(2**40, 0, None, b"v"), 1))
    stage.produce(raw_batch(record(0, 2**63 - 1, None, b"v"), 1))
    for time in (NOW_MS, NOW_MS + 1, LATEST_TIME):
        assert listed(stage, time)[0] == 0
    assert stage.closed == []


def test_the_end_of_the_one_epoch_is_the_end_of_the_log() -> None:
    stage = Stage()
    stage.topic()
    stage.produce(batch([b"a", b"b"]))

    def end(epoch: int, current: int = -1, topic: str = "rain", partition: int = 0) -> tuple[int, int]:
        part = OffsetForLeaderPartition(partition, current, epoch)
        answer = stage.ask(OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic, [part])]))
        found = answer.topics[0].partitions[0]
        return found.error_code, found.end_offset

    assert end(0) == (0, 2)
    assert end(5) == (0, -1)
    assert end(0, current=1)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert end(0, topic="fog")[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert end(0, partition=1)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_deleted_records_are_gone_also_after_a_restart() -> None:
    """The start of the log moves, durably; a reader below it is told so."""
    stage = Stage()
    stage.topic()
    stage.produce(*(batch([b"a", b"b"]) for _ in range(3)))
    assert delete_records(stage, 3) == (0, 3)
    for node in (stage, Stage(stage.disk)):
        assert listed(node, EARLIEST)[1] == 3
        assert node.fetch(2).responses[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert decode_header(records_of(node.fetch(3))).base_offset == 2
    assert delete_records(stage, -1) == (0, 6)
    assert delete_records(stage, 2) == (0, 6)


def test_what_cannot_be_deleted_has_its_code() -> None:
    stage = Stage()
    stage.topic()
    stage.produce()
    for offset in (2, -2):
        assert delete_records(stage, offset) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)
    assert delete_records(stage, 0, topic="fog") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    assert delete_records(stage, 0, partition=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
    stage.send(DeleteRecordsRequest([DeleteRecordsTopic("rain", [DeleteRecordsPartition(0, 1)])]))
    stage.end_syncs("Input/output error")
    ((_, answer),) = stage.answers()
    assert answer.topics[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert listed(stage, EARLIEST)[1] == 0


@pytest.mark.parametrize("version", range(6))
def test_a_producer_id_is_never_given_twice(version: int) -> None:
    """Not within a life, nor over a power cut."""
    stage = Stage()
    given = set()
    for _ in range(3):
        for _ in range(5):
            answer = stage.ask(InitProducerIdRequest(None, 1000), version)
            assert (answer.error_code, answer.producer_epoch) == (0, 0)
            assert answer.producer_id not in given
            given.add(answer.producer_id)
        stage.disk.cut_power(Mood.NOTHING)
        stage = Stage(stage.disk)


def test_a_producer_id_waits_for_its_reserve() -> None:
    """An id that a power cut could give again is not given."""
    stage = Stage()
    stage.send(InitProducerIdRequest(None, 1000))
    assert stage.answers() == []
    stage.end_syncs("Input/output error")
    assert stage.answers()[0][1].error_code == ErrorCode.KAFKA_STORAGE_ERROR


@pytest.mark.parametrize("version", range(5))
def test_api_versions_lists_just_what_works(version: int) -> None:
    stage = Stage()
    answer = stage.ask(ApiVersionsRequest("stage", "1.0"), version)
    assert answer.error_code == 0
    assert {entry.api_key: entry.max_version for entry in answer.api_keys} == {
        int(key): api.max_version for key, api in APIS.items()
    }


def test_the_cluster_is_one_node() -> None:
    stage = Stage()
    answer = stage.ask(DescribeClusterRequest(), 1)
    assert [(broker.broker_id, broker.host, broker.port) for broker in answer.brokers] == [(1, "127.0.0.1", 9092)]
    assert answer.cluster_id == stage.node.catalog.cluster_id
    assert stage.node.counters.requests[ApiKey.DESCRIBE_CLUSTER] == 1


def test_a_clean_stop_makes_everything_durable() -> None:
    """Memory topics too; the next start finds it all."""
    stage = Stage()
    stage.topic()
    stage.topic("cloud", penstock_durability="memory")
    stage.produce()
    stage.produce(topic="cloud")
    for effect in stage.node.sync_all():
        stage.syncs.append(effect)  # type: ignore[arg-type]  # only syncs come
    stage.end_syncs()
    stage.node.shut_down()
    stage.disk.cut_power(Mood.NOTHING)
    again = Stage(stage.disk)
    for topic in ("rain", "cloud"):
        assert len(cut(records_of(again.fetch(0, topic=topic)))) == 1
        assert ack_of(again.produce(topic=topic)).base_offset == 1


def test_retention_works_by_itself() -> None:
    """Old segments go when their time has come, without anybody asking."""
    stage = Stage()
    stage.topic(segment_bytes=str(1 << 20), retention_ms="60000")
    stage.produce(*(batch([b"x" * 700_000]) for _ in range(3)))
    stage.wait(50_000)
    assert listed(stage, EARLIEST)[1] == 0
    stage.wait(120_000)
    stage.end_syncs()
    assert listed(stage, EARLIEST)[1] >= 2
    assert ack_of(stage.produce(batch(stamps=[stage.now_ms]))).base_offset == 3


def test_a_damaged_metadata_log_refuses_to_start() -> None:
    """A node that has forgotten topics would delete their folders."""
    stage = Stage()
    stage.topic()
    stage.topic("cloud")
    stage.disk.inode(f"meta/{0:020d}.log").flip(80, 1)
    with pytest.raises(StorageError, match="the broker does not start without it"):
        Stage(stage.disk)
    assert len(stage.disk.names("topics")) == 2


def life(disk: FakeDisk) -> list[int]:
    """A node that creates, stores, reads and deletes; the offsets it acknowledged."""
    try:
        stage = Stage(disk)
    except (OSError, StorageError):
        return []
    acknowledged = []
    if "rain" not in stage.node.catalog.topics:
        stage.ask(CreateTopicsRequest([CreatableTopic("rain", 1, 1)]))
    for _ in range(3):
        ack = ack_of(stage.produce(batch([b"x" * 300])))
        if ack.error_code == 0:
            acknowledged.append(ack.base_offset)
    stage.fetch(0)
    listed(stage, NOW_MS)
    stage.wait(40_000)
    stage.end_syncs()
    return acknowledged


def test_whichever_disk_call_fails_no_acknowledged_record_is_lost() -> None:
    """Break the first call, then the second, until a life is untouched: an error or a stop, never a lie."""
    call = 0
    while True:
        call += 1
        stage = Stage()
        stage.topic()
        stage.produce()
        stage.disk.faults.fail_at = call
        acknowledged = [0, *life(stage.disk)]
        untouched = stage.disk.faults.raised == 0
        stage.disk.faults.calm_down()
        stage.disk.cut_power(Mood.NOTHING)
        again = Stage(stage.disk)
        found = [decode_header(one).base_offset for one in cut(records_of(again.fetch(0)))]
        assert set(acknowledged) <= set(found), call
        if untouched:
            assert call > 20
            return

"""Positions of groups: kept before they are acknowledged, never phantom, forgotten in time."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from stage.groups import Party
from stage.nodes import Stage

from penstock.errors import ErrorCode, StorageError
from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.kafka.wire.messages.list_groups import ListGroupsRequest
from penstock.kafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.kafka.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.kafka.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from penstock.queue.core import table_log as journal
from penstock.queue.core.events import Sync
from penstock.queue.core.log_values import read_values
from penstock.queue.groups.changes import decode_change
from penstock.queue.groups.table import GroupTable

DAY_MS = 24 * 3600 * 1000


def commit_request(group: str, offset: int, topic: str = "rain", metadata: str = "") -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(0, offset, committed_metadata=metadata)
    return OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, partitions=[partition])])


def commit(stage: Stage, group: str, offset: int, topic: str = "rain", metadata: str = "") -> int:
    answer = stage.ask(commit_request(group, offset, topic, metadata), 9)
    code: int = answer.topics[0].partitions[0].error_code
    return code


def fetched(stage: Stage, group: str, topic: str = "rain") -> int:
    wanted = OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(topic, partition_indexes=[0])])
    offset: int = stage.ask(OffsetFetchRequest(groups=[wanted]), 9).groups[0].topics[0].partitions[0].committed_offset
    return offset


def everything(stage: Stage, group: str) -> dict[str, int]:
    answer = stage.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=None)]), 9)
    return {topic.name: topic.partitions[0].committed_offset for topic in answer.groups[0].topics}


def rebuilt(stage: Stage) -> list[Any]:
    """What the log of a node says, replayed."""
    table = GroupTable()
    for value in read_values(stage.node.groups.journal.partition.log, "group log"):
        table.replay_(decode_change(value))
    return list(table.snapshot())


def test_a_position_is_acknowledged_and_seen_when_it_is_durable() -> None:
    stage = Stage()
    stage.topic()
    stage.send(commit_request("g", 7), 9)
    assert stage.answers() == []
    assert fetched_unsynced(stage) == -1
    stage.end_syncs()
    assert fetched(Stage(stage.disk), "g") == 7


def fetched_unsynced(stage: Stage) -> int:
    """Asked on another connection while the commit is on its way to the disk."""
    stage.connect(9)
    wanted = OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("rain", partition_indexes=[0])])
    stage.send(OffsetFetchRequest(groups=[wanted]), 9, 9)
    ((_, answer),) = stage.answers(9)
    offset: int = answer.groups[0].topics[0].partitions[0].committed_offset
    return offset


def test_commits_of_one_step_share_a_sync() -> None:
    """What arrives while a sync is under way is the next group, whoever sent it."""
    stage = Stage()
    stage.topic()
    stage.send(commit_request("g0", 1), 9)
    before = len(stage.seen(Sync))
    for number in range(1, 50):
        stage.connect(number + 1)
        stage.send(commit_request(f"g{number}", 1), 9, number + 1)
    stage.end_syncs()
    assert len(stage.seen(Sync)) == before + 1
    assert all(len(stage.answers(number)) == 1 for number in range(1, 51))


def test_a_failed_sync_acknowledges_no_position() -> None:
    stage = Stage()
    stage.topic()
    commit(stage, "g", 1)
    stage.send(commit_request("g", 2), 9)
    stage.end_syncs("no")
    ((_, answer),) = stage.answers()
    assert answer.topics[0].partitions[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert fetched(stage, "g") == 1
    assert commit(stage, "g", 3) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "groups" in stage.node.stopped


def test_a_full_disk_refuses_positions_until_there_is_room() -> None:
    stage = Stage()
    stage.topic()
    commit(stage, "g", 1)
    stage.disk.faults.room = 0
    assert commit(stage, "g", 2) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    stage.disk.faults.room = None
    assert fetched(stage, "g") == 1
    assert commit(stage, "g", 3) == 0
    assert fetched(Stage(stage.disk), "g") == 3


def test_positions_go_with_their_topic() -> None:
    """A topic that comes back under the same name has no positions of the one before, nor after a restart."""
    stage = Stage()
    stage.topic()
    commit(stage, "g", 7)
    stage.ask(DeleteTopicsRequest([DeleteTopicState("rain")]))
    stage.topic()
    assert (fetched(stage, "g"), everything(stage, "g")) == (-1, {})
    stage.step()
    stage.end_syncs()
    assert stage.node.groups.table.positions == {}
    assert fetched(Stage(stage.disk), "g") == -1


def test_a_commit_under_way_when_its_topic_goes_harms_nobody() -> None:
    stage = Stage()
    stage.topic()
    stage.connect(2)
    stage.send(DeleteTopicsRequest([DeleteTopicState("rain")]), None, 2)
    stage.send(commit_request("g", 7), 9)
    stage.end_syncs()
    stage.wait(1_000_000)
    stage.end_syncs()
    assert (stage.node.groups.table.positions, stage.node.groups.groups) == ({}, {})


def test_positions_of_a_group_that_is_gone_for_a_week_are_forgotten() -> None:
    """A week after the last member left, or after the last commit where nobody ever joined."""
    party = Party(1)
    (one,) = party
    party.form(one)
    one.commit(5)
    stage = party.stage
    stage.connect(9)
    for _ in range(8 * 24 * 3):
        stage.wait(20 * 60 * 1000 // 60)
        one.beat()
    stage.wait(1)
    assert fetched(stage, "g") == 5
    one.leave()
    stage.end_syncs()
    commit(stage, "simple", 3)
    stage.wait(7 * DAY_MS - 3_600_000)
    stage.end_syncs()
    assert (fetched(stage, "g"), fetched(stage, "simple")) == (5, 3)
    stage.wait(2 * 3_600_000)
    stage.end_syncs()
    assert (fetched(stage, "g"), fetched(stage, "simple")) == (-1, -1)
    assert stage.ask(ListGroupsRequest()).groups == []


def test_a_commit_under_way_is_not_swept_away() -> None:
    """What is on its way to the disk is not in the table: an empty group is not nothing."""
    stage = Stage()
    stage.topic()
    stage.send(commit_request("g", 7), 9)
    stage.now_ms += 1_000_000
    stage.step()
    stage.end_syncs()
    assert len(stage.answers()) == 1
    assert fetched(stage, "g") == 7
    assert fetched(Stage(stage.disk), "g") == 7


def test_positions_can_be_forgotten_where_nobody_reads() -> None:
    stage = Stage()
    stage.topic()
    commit(stage, "g", 7)
    partition = OffsetDeleteRequestPartition(0)
    answer = stage.ask(OffsetDeleteRequest("g", [OffsetDeleteRequestTopic("rain", [partition])]))
    assert answer.topics[0].partitions[0].error_code == 0
    assert fetched(stage, "g") == -1


@pytest.mark.parametrize("size", [4096, 4097])
def test_metadata_is_kept_up_to_its_limit(size: int) -> None:
    stage = Stage()
    stage.topic()
    expected = 0 if size <= 4096 else ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert commit(stage, "g", 1, metadata="x" * size) == expected


def test_positions_are_bounded() -> None:
    """What is known may move on; what is new finds no room; the limit is of all groups together."""
    stage = Stage(group_bytes_max=1024)
    stage.topic()
    codes = [commit(stage, f"g{number}", 1) for number in range(12)]
    assert codes[:9] == [0] * 9
    assert codes[-1] == ErrorCode.INVALID_COMMIT_OFFSET_SIZE
    assert commit(stage, "g0", 2) == 0


def test_the_log_does_not_grow_while_the_node_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots take the place of what they hold, also while commits never stop; a restart finds the last of each."""
    monkeypatch.setattr(journal, "COMPACT_BYTES", 4_000)
    stage = Stage()
    stage.topic()
    stage.connect(2)
    sizes = []
    for number in range(600):
        # The second comes while the first is on its way to the disk, so that something is always under way.
        stage.send(commit_request(f"g{number % 3}", number), 9, 1)
        stage.send(commit_request("other", number), 9, 2)
        stage.end_first_syncs()
        log = stage.node.groups.journal.partition.log
        sizes.append(sum(segment.end for segment in log.segments))
    stage.end_syncs()
    assert len(stage.answers(1)) == len(stage.answers(2)) == 600
    assert max(sizes) < 20_000
    assert rebuilt(stage) == list(stage.node.groups.table.snapshot())
    again = Stage(stage.disk)
    assert [fetched(again, group) for group in ("g0", "g1", "g2", "other")] == [597, 598, 599, 599]


def test_a_snapshot_that_finds_no_room_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "COMPACT_BYTES", 1_000)
    stage = Stage()
    stage.topic()
    for number in range(100):
        stage.disk.faults.room = 0 if number % 10 == 5 else None
        commit(stage, "g", number)
    assert fetched(Stage(stage.disk), "g") == 99


def test_a_damaged_group_log_is_named_and_nothing_is_guessed() -> None:
    """Positions that go back silently would be read twice; the node refuses to start instead."""
    stage = Stage()
    stage.topic()
    for number in range(3):
        commit(stage, "g", number)
    stage.node.shut_down()
    file = stage.disk.open("groups/00000000000000000000.log")
    file.write(100, (b"\xff\xff",))
    with pytest.raises(StorageError, match="log of groups is damaged at offset 0"):
        Stage(stage.disk)


def test_positions_are_asked_for_by_id_as_well() -> None:
    stage = Stage()
    topic_id = stage.topic()
    request = OffsetCommitRequest("g")
    request.topics = [
        OffsetCommitRequestTopic(topic_id=known, partitions=[OffsetCommitRequestPartition(0, 4)])
        for known in (topic_id, UUID(int=9))
    ]
    codes = [topic.partitions[0].error_code for topic in stage.ask(request, 10).topics]
    assert codes == [0, ErrorCode.UNKNOWN_TOPIC_ID]
    assert fetched(stage, "g") == 4

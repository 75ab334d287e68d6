"""Reading what is committed: up to the stable end, told what was aborted, woken when the end moves."""

from __future__ import annotations

from typing import Any

import pytest
from stage.batches import batch
from stage.logs import cut
from stage.nodes import Stage, fetch_request, records_of
from stage.transactions import stage_end, stage_part

from penstock.kafka.records.batch import decode_header
from penstock.kafka.wire.messages.fetch import FetchRequest
from penstock.kafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.queue.core.partition import Partition

LATEST, LATEST_TIME = -1, -3
LONG_MS = 60_000


def committed(offset: int, **options: Any) -> FetchRequest:
    request = fetch_request(offset, **options)
    request.isolation_level = 1
    return request


def partition_of(stage: Stage) -> Partition:
    found = stage.node.host.partition(stage.node.catalog.topics["rain"], 0, stage.now_ms)
    assert isinstance(found, Partition)
    return found


def write(stage: Stage, *parts: tuple[str, int, int]) -> None:
    """Append (what, producer, sequence) to the partition and let it become durable."""
    partition = partition_of(stage)
    for what, pid, sequence in parts:
        if what == "part":
            stage_part(partition.log, b"value", (pid, 0, sequence))
        else:
            stage_end(partition.log, pid, commit=what == "commit")
    stage.node.host.dirty[partition] = None
    stage.step()
    stage.end_syncs()


def offsets(answer: Any) -> list[int]:
    return [decode_header(one).base_offset for one in cut(records_of(answer))]


@pytest.mark.parametrize("version", [4, 5, 11, 12])
def test_a_reader_of_committed_records_gets_nothing_behind_the_stable_end(version: int) -> None:
    """The other reader gets all; both are told both ends."""
    stage = Stage()
    stage.topic()
    stage.produce(batch([b"plain"]))
    write(stage, ("part", 1, 0), ("part", 2, 0), ("commit", 2, 0))
    for request, seen, aborted in ((committed(0), [0], []), (fetch_request(0), [0, 1, 2, 3], None)):
        answer = stage.ask(request, version)
        (part,) = answer.responses[0].partitions
        assert offsets(answer) == seen
        assert (part.high_watermark, part.last_stable_offset, part.aborted_transactions) == (4, 1, aborted)
    assert offsets(stage.ask(committed(2), version)) == []


@pytest.mark.parametrize("version", [4, 11, 12])
def test_a_reader_of_committed_records_is_told_what_was_aborted(version: int) -> None:
    """By producer and first offset, also when it begins in the middle."""
    stage = Stage()
    stage.topic()
    write(stage, ("part", 1, 0), ("part", 2, 0), ("part", 1, 1), ("abort", 1, 0), ("commit", 2, 0))
    for offset in (0, 2):
        (part,) = stage.ask(committed(offset), version).responses[0].partitions
        assert [(one.producer_id, one.first_offset) for one in part.aborted_transactions] == [(1, 0)]
    assert stage.ask(committed(4), version).responses[0].partitions[0].aborted_transactions == []


def test_a_waiting_reader_of_committed_records_wakes_when_the_stable_end_moves() -> None:
    """Not when more becomes visible; and what was held back counts as bytes, too."""
    stage = Stage()
    stage.topic()
    stage.connect(2)
    stage.connect(3)
    write(stage, ("part", 1, 0))
    stage.send(committed(0, wait_ms=LONG_MS, min_bytes=300), 12, 2)
    stage.send(fetch_request(1, wait_ms=LONG_MS), 12, 3)
    write(stage, ("part", 1, 1), ("part", 1, 2), ("part", 1, 3))
    assert stage.answers(2) == []
    assert offsets(stage.answers(3)[0][1]) == [1, 2, 3]
    write(stage, ("commit", 1, 0))
    ((_, answer),) = stage.answers(2)
    assert offsets(answer) == [0, 1, 2, 3, 4]


def test_the_latest_offset_for_a_reader_of_committed_records_is_the_stable_end() -> None:
    """And no time is found behind it."""
    stage = Stage()
    stage.topic()
    stage.produce(batch([b"plain"]))
    write(stage, ("part", 1, 0))

    def find(timestamp: int, isolation: int) -> int:
        topics = [ListOffsetsTopic("rain", [ListOffsetsPartition(0, timestamp=timestamp)])]
        answer = stage.ask(ListOffsetsRequest(-1, isolation, topics), 7)
        offset: int = answer.topics[0].partitions[0].offset
        return offset

    assert (find(LATEST, 0), find(LATEST, 1)) == (2, 1)
    assert (find(LATEST_TIME, 0), find(LATEST_TIME, 1)) == (0, 0)
    stage.ask(fetch_request(0), 12)
    assert find(stage.now_ms, 1) == 0

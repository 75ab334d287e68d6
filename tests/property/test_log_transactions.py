"""Transactions through many lives of a log: the state is always what the log says, and nobody sees half of one."""

from __future__ import annotations

from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st
from stage.batches import batch
from stage.logs import FOLDER, cut, new_disk, opened, stage, sync
from stage.transactions import committed_values, stage_end, stage_part

from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.kafka.records.batch import decode_header
from penstock.kafka.records.marker import decode_marker
from penstock.kafka.records.record import decode_records
from penstock.queue.log.log import Log
from penstock.queue.log.reading import read
from proof.sim.inode import Mood

SMALL = TopicConfig(segment_bytes=600)
PIDS = (1, 2, 3)
ACTIONS = [
    "part", "part", "part", "commit", "abort", "plain", "flush", "sync", "sync",
    "full", "kill", "stop", "power", "checkpoint", "lose index", "lose snapshots", "witness",
]  # fmt: skip


def epoch_and_sequence(log: Log, pid: int) -> tuple[int, int]:
    known = log.producers.get(pid)
    if known is None:
        return 0, 0
    return known.epoch, known.batches[-1].last_sequence + 1 if known.batches else 0


def oracle(log: Log) -> tuple[list[bytes], int]:
    """What is committed below the first open transaction, and where that is, told from the visible batches alone."""
    parts: list[tuple[int, int, list[bytes]]] = []  # offset, producer, values
    first: dict[int, int] = {}
    aborted: set[int] = set()  # offsets of batches
    offset = log.start_offset
    while offset < log.visible.offset:
        for one in cut(read(log, offset, 1 << 20)):
            header = decode_header(one)
            offset = header.next_offset
            if header.is_control:
                begun = first.pop(header.producer_id, None)
                if begun is not None and not decode_marker(one).is_commit:
                    aborted |= {at for at, pid, _ in parts if pid == header.producer_id and at >= begun}
                continue
            if header.is_transactional:
                first.setdefault(header.producer_id, header.base_offset)
            values = [record.value or b"" for record in decode_records(one)]
            parts.append((header.base_offset, header.producer_id, values))
    stable = min(first.values(), default=log.visible.offset)
    return [value for at, _, values in parts for value in values if at < stable and at not in aborted], stable


# The power is cut after a roll and before the first sync: the second segment keeps its name, the first loses its data.
@example(seed=272578, script=["part", "part", "part", "part", "power"])
# The same within one segment: the second batch is kept, the first is torn.
@example(seed=1744478980, script=["part", "plain", "flush", "witness", "abort", "full", "power"])
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), script=st.lists(st.sampled_from(ACTIONS), min_size=5, max_size=50))
def test_whatever_happens_the_state_is_what_the_log_says(seed: int, script: list[str]) -> None:
    """Stable end, open transactions, aborted ranges, producers; live as after every kind of stop."""
    chance = Random(seed)
    disk = new_disk()
    disk.chance.seed(seed)
    log = opened(disk, SMALL)
    for action in script:
        pid = chance.choice(PIDS)
        epoch, sequence = epoch_and_sequence(log, pid)
        producer = log.producers.get(pid)
        try:
            if action == "part":
                stage_part(log, chance.randbytes(chance.randrange(1, 150)), (pid, epoch, sequence))
            elif action in ("commit", "abort") and producer is not None and producer.first_offset >= 0:
                stage_end(log, pid, epoch + chance.randrange(2), commit=action == "commit")
            elif action == "plain":
                stage(log, batch([chance.randbytes(chance.randrange(1, 150))]))
            elif action == "flush":
                log.flush()
            elif action == "sync":
                sync(log)
            elif action == "full":
                disk.faults.room = chance.randrange(300)
                log.flush()
        except StorageError:
            pass
        disk.faults.calm_down()
        if action == "checkpoint":
            log.save_checkpoint()
        elif action.startswith("lose"):
            ending = ".index" if action == "lose index" else ".producers"
            for name in disk.names(FOLDER):
                if name.endswith(ending):
                    disk.remove(f"{FOLDER}/{name}")
        elif action == "witness" and (file := log.witness.begin_sync()) is not None:
            file.sync()
            log.witness.end_sync(is_durable=True)
        elif action in ("kill", "stop", "power"):
            if action == "stop":
                sync(log)
                log.close()
            elif action == "power":
                disk.cut_power(chance.choice(list(Mood)))
            log = opened(disk, SMALL)
        values, stable = oracle(log)
        assert log.stable.offset == stable
        assert committed_values(log, chance.choice((0, 100, 1 << 20))) == values


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1), lose=st.sampled_from([(), (".index",), (".producers",), (".index", ".producers")])
)
def test_a_log_that_is_opened_again_knows_what_it_knew(seed: int, lose: tuple[str, ...]) -> None:
    """With its side files, without them, and with old ones."""
    chance = Random(seed)
    disk = new_disk()
    log = opened(disk, SMALL)
    for _ in range(chance.randrange(40)):
        pid = chance.choice(PIDS)
        epoch, sequence = epoch_and_sequence(log, pid)
        producer = log.producers.get(pid)
        if producer is not None and producer.first_offset >= 0 and chance.random() < 0.4:
            stage_end(log, pid, epoch + chance.randrange(2), commit=chance.random() < 0.5)
        else:
            stage_part(log, chance.randbytes(60), (pid, epoch, sequence))
        if chance.random() < 0.5:
            sync(log)
        if chance.random() < 0.1:
            log.save_checkpoint()
    sync(log)
    for name in disk.names(FOLDER):
        if lose and name.endswith(lose):
            disk.remove(f"{FOLDER}/{name}")
    again = opened(disk, SMALL)
    assert again.producers.known == log.producers.known
    assert [(o, p.segment.base_offset, p.position) for o, p in again.transactions.open.items()] == [
        (o, p.segment.base_offset, p.position) for o, p in log.transactions.open.items()
    ]
    ranges = [[one for segment in each.segments for one in segment.index.aborted] for each in (log, again)]
    assert ranges[0] == ranges[1]
    assert again.stable.offset == log.stable.offset

"""A log through many lives: whatever is appended, synced, cut off and opened again, the acknowledged stays."""

from __future__ import annotations

from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st
from stage.batches import batch
from stage.logs import FOLDER, cut, new_disk, opened, read_all, stage, sync

from penstock.config.topic import TopicConfig
from penstock.errors import StorageError
from penstock.kafka.records.batch import decode_header
from penstock.kafka.records.record import decode_records
from penstock.queue.log.inspection import inspect_partition
from penstock.queue.log.reading import read
from proof.sim.inode import Mood

SMALL = TopicConfig(segment_bytes=700)
ACTIONS = ["append", "append", "flush", "sync", "sync", "full", "kill", "stop", "power", "checkpoint", "witness"]


# The power is cut before the first sync.
@example(seed=2743314206, script=["append", "append", "append", "power"])
@settings(max_examples=120, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), script=st.lists(st.sampled_from(ACTIONS), min_size=5, max_size=40))
def test_what_was_acknowledged_survives_every_life(seed: int, script: list[str]) -> None:
    """At its offset, as it was; and inspection finds no damage that recovery did not leave."""
    chance = Random(seed)
    disk = new_disk()
    disk.chance.seed(seed)
    log = opened(disk, SMALL)
    acknowledged: dict[int, bytes] = {}
    sequence = 0

    def acknowledge() -> None:
        for found in read_all(log):
            assert acknowledged.setdefault(decode_header(found).base_offset, found) == found

    for action in script:
        if action == "append":
            try:
                stage(log, batch([chance.randbytes(chance.randrange(300))], producer=(1, 0, sequence)))
                sequence += 1
            except StorageError:
                sequence = log.next_offset
        elif action == "flush":
            log.flush()
        elif action == "sync":
            sync(log)
            acknowledge()
        elif action == "full":
            disk.faults.room = chance.randrange(400)
            try:
                log.flush()
            except StorageError:
                sequence = log.next_offset
            disk.faults.calm_down()
        elif action == "checkpoint":
            log.save_checkpoint()
        elif action == "witness" and (file := log.witness.begin_sync()) is not None:
            file.sync()
            log.witness.end_sync(is_durable=True)
        elif action in ("kill", "stop", "power"):
            if action == "stop":
                sync(log)
                acknowledge()
                log.close()
            elif action == "power":
                disk.cut_power(chance.choice(list(Mood)))
            log = opened(disk, SMALL)
            sequence = log.next_offset
            assert [finding for finding in inspect_partition(disk, FOLDER) if finding.is_damage] == []
            known = log.producers.known.get(1)
            assert (known.batches[-1].last_sequence + 1 if known else 0) == log.next_offset
        found = {decode_header(one).base_offset: one for one in read_all(log)}
        assert acknowledged.items() <= found.items()


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(1, 5), min_size=1, max_size=15),
    sizes=st.lists(st.integers(0, 200), min_size=1, max_size=5),
    bytes_max=st.integers(0, 3000),
    segment_bytes=st.integers(100, 3000),
)
def test_a_reader_sees_every_record_once_and_in_order(
    counts: list[int], sizes: list[int], bytes_max: int, segment_bytes: int
) -> None:
    """Whatever the sizes of batches, reads and segments."""
    log = opened(new_disk(), TopicConfig(segment_bytes=segment_bytes))
    want = []
    for number, count in enumerate(counts):
        values = [b"%d/%d" % (number, n) + b"x" * sizes[n % len(sizes)] for n in range(count)]
        stage(log, batch(values))
        want += values
    sync(log)
    found: list[bytes | None] = []
    while len(found) < log.visible.offset:
        batches = cut(read(log, len(found), bytes_max))
        found += [record.value for one in batches for record in decode_records(one)]
    assert found == want

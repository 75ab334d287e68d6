"""What was acknowledged survives a power cut: on a real ext4 whose journal is thrown away."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from penstock.assure.report import report_lines
from penstock.assure.verdict import Result, Verdict, Violation
from penstock.config.broker import BrokerConfig
from penstock.drills.broker_process import BROKER, BrokerProcess
from penstock.drills.recording_clients import (
    Place,
    Recorder,
    RecordingConsumer,
    RecordingProducer,
    create_topic,
    read_all,
)
from penstock.queue.core.events import Sync, Synced
from penstock.queue.server.disk import RealDisk, RealFile
from penstock.queue.server.sync_pool import SyncPool
from proof.storm.fragile_disk import FragileDisk

CYCLES = 10
ACKS_BEFORE_CUT = 100
FIRST_ACKS_WITHIN_S = 30.0
UNSETTLED_MAX = 1000
PLANT = Path(__file__).parent / "plants" / "ack_before_sync.py"
PLACES = [Place("cut", number) for number in range(3)]
Mount = Callable[[int], FragileDisk]


@pytest.mark.timeout(200)
def test_acknowledged_records_survive_power_cuts(fragile_disk: Mount, recorder: Recorder, tmp_path: Path) -> None:
    """Ten cuts under load: every acknowledged record is at its offset, the rest is absent or whole."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))

    verdict = cut_power_under_load(fragile_disk, recorder, tmp_path, seed, CYCLES, BROKER)

    repeat = f"seed {seed}; repeat: SEED={seed} .venv/bin/pytest {__file__}"
    assert verdict.result is Result.VALID, "\n".join([*report_lines(verdict), repeat])
    assert verdict.tally.acked > 100 * CYCLES, repeat


@pytest.mark.timeout(120)
def test_a_broker_that_acknowledges_before_the_sync_is_convicted(
    fragile_disk: Mount, recorder: Recorder, tmp_path: Path
) -> None:
    """The same cuts find the planted lie: the check can fail."""
    verdict = cut_power_under_load(fragile_disk, recorder, tmp_path, 1, 2, (sys.executable, str(PLANT)))

    assert verdict.result is Result.INVALID
    assert verdict.violations.get(Violation.LOST, 0) > 0


def cut_power_under_load(
    fragile_disk: Mount, recorder: Recorder, folder: Path, seed: int, cycles: int, command: Sequence[str]
) -> Verdict:
    """Write, cut the power at a random moment, start again; then read everything and judge."""
    chance = random.Random(seed)
    disk = fragile_disk(96 * 1024 * 1024)
    broker = BrokerProcess(disk.root / "data", folder, command=command)
    with broker:
        create_topic(broker.address, "cut", len(PLACES), {"segment.bytes": str(1024 * 1024)})
        os.sync()  # the plant does not sync the topic's creation either; what it loses shall be records
        for cycle in range(cycles):
            _write_until_cut(broker, disk, recorder, chance, cycle)
            disk.unmount()
            disk.mount()
            broker.start()
        read_all("final", broker.address, recorder, PLACES)
    return recorder.verdict()


def _write_until_cut(
    broker: BrokerProcess, disk: FragileDisk, recorder: Recorder, chance: random.Random, cycle: int
) -> None:
    producers = [RecordingProducer(f"p{cycle}-{number}", broker.address, recorder) for number in range(2)]
    reader = RecordingConsumer(f"c{cycle}", broker.address, recorder, PLACES)

    def cut() -> None:
        disk.cut_power()
        broker.kill()

    timer = threading.Timer(chance.uniform(0.1, 0.8), cut)
    gives_up = time.monotonic() + FIRST_ACKS_WITHIN_S
    while not timer.finished.is_set():
        if timer.ident is None and sum(producer.acked for producer in producers) > ACKS_BEFORE_CUT:
            timer.start()
        assert timer.ident is not None or time.monotonic() < gives_up, "nothing is acknowledged"
        _write_some(producers, chance)
        reader.poll(0.01)
    timer.join()
    for producer in producers:
        producer.abandon()
    reader.close()


def _write_some(producers: list[RecordingProducer], chance: random.Random) -> None:
    for producer in producers:
        producer.wait(0)
        place = chance.choice(PLACES)
        for _ in range(chance.randrange(1, 30) if producer.unsettled < UNSETTLED_MAX else 0):
            producer.send(place, chance.choice((0, 100, 3000)))


@pytest.mark.parametrize("is_taken_for_data", [False, True])
def test_files_that_are_synced_together_survive_a_cut(
    fragile_disk: Mount, monkeypatch: pytest.MonkeyPatch, is_taken_for_data: bool
) -> None:
    """One that has grown needs more than its data to be written: taken for overwritten, it is lost."""
    disk = fragile_disk(32 * 1024 * 1024)
    files = RealDisk(str(disk.root))
    new, old, other = (files.create(name) for name in ("new", "old", "other"))
    files.sync_folder("")
    pool = SyncPool(files, BrokerConfig(sync_inline_us_max=10_000_000))
    for file in (old, other):
        file.write(0, (b"a" * 5000,))
        assert pool.run([Sync(1, [file], [])], 1) == [Synced(1, None)]
    if is_taken_for_data:
        monkeypatch.setattr(RealFile, "is_overwritten_on", lambda *_: True)
    for file in (new, other, old):
        file.write(0, (b"b" * 5000,))

    ended = pool.run([Sync(number, [file], []) for number, file in enumerate((new, other, old))], 1)

    disk.cut_power()
    for file in (new, other, old):
        file.close()
    pool.stop()
    disk.unmount()
    disk.mount()
    assert sorted(ended) == [Synced(number, None) for number in range(3)]
    found = {name: (disk.root / name).read_bytes() == b"b" * 5000 for name in ("old", "other", "new")}
    assert found == {"old": True, "other": True, "new": not is_taken_for_data}


def test_syncs_of_a_disk_that_is_gone_fail(fragile_disk: Mount) -> None:
    """Whoever runs them, together, the kernel by itself or a thread: each says so, none is taken for done."""
    disk = fragile_disk(32 * 1024 * 1024)
    files = RealDisk(str(disk.root))
    dirty = [files.create(str(number)) for number in range(4)]
    for file in dirty:
        file.write(0, (b"x" * 5000,))
    ways = ({}, {"sync_shares_flush": False}, {"sync_shares_flush": False, "sync_in_kernel": False})
    pools = [SyncPool(files, BrokerConfig(**way)) for way in ways]
    disk.cut_power()
    for pool in pools:
        ended = pool.run([Sync(number, [file], []) for number, file in enumerate(dirty)], 1)
        assert sorted(synced.job for synced in ended if synced.error is not None) == [0, 1, 2, 3]
    for file in dirty:
        file.close()

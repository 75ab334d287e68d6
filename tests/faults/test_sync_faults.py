"""Syncs that fail stop one partition for good; syncs that are slow only make groups larger."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from penstock.assure.report import report_lines
from penstock.assure.verdict import Result
from penstock.drills.broker_process import BrokerProcess
from penstock.drills.recording_clients import Place, Recorder, RecordingProducer, create_topic, read_all
from proof.storm.fragile_disk import FragileDisk

MIB = 1024 * 1024
PLANT = Path(__file__).parent / "plants" / "failing_kernel_sync.py"
STOPPED, ALIVE = Place("faulty", 0), Place("faulty", 1)
Start = Callable[..., BrokerProcess]


@pytest.fixture
def start_traced(start_broker: Start, need_tool: Callable[[str], str], tmp_path: Path) -> Start:
    """start_traced(injection) gives a broker whose fdatasync calls go wrong as told; they are in strace.txt."""
    strace = need_tool("strace")

    def start(injection: str) -> BrokerProcess:
        out = str(tmp_path / "strace.txt")
        # A checkpoint syncs witnesses: far away, so that the n-th call is a group's.
        return start_broker(
            prefix=[strace, "-f", "-y", "-o", out, "-e", "trace=fdatasync", "-e", f"inject=fdatasync:{injection}"],
            settings={"checkpoint_ms": 600_000, "sync_threads": 1, "sync_in_kernel": False},
        )

    return start


@pytest.mark.timeout(120)
def test_a_failed_sync_stops_its_partition_and_nothing_else(
    start_traced: Start, recorder: Recorder, tmp_path: Path
) -> None:
    """No ack for it, health red, the other partition unhurt, no second try; after a start all acked is there."""
    broker = start_traced("error=EIO:when=12")
    create_topic(broker.address, STOPPED.topic, 2)
    producer = RecordingProducer("p", broker.address, recorder, idempotent=False, retries=0)
    for _ in range(50):
        producer.send(STOPPED)
        producer.settle()
        if producer.troubles:
            break
    acked = producer.acked

    assert producer.troubles
    assert 0 < acked < 50
    assert _refusal(broker, STOPPED) == "KAFKA_STORAGE_ERROR"
    assert _refusal(broker, STOPPED) == "KAFKA_STORAGE_ERROR"
    status, body = broker.get("/health")
    assert status == 503
    assert "faulty-0" in body
    for _ in range(100):
        producer.send(ALIVE)
    producer.settle()
    assert producer.acked == acked + 100

    path = _path_of(broker, STOPPED)
    tried = [line for line in (tmp_path / "strace.txt").read_text().splitlines() if path in line]
    assert "EIO" in tried[-1], "a sync that failed was tried again"

    broker.kill()
    broker.prefix = ()
    broker.start()
    assert broker.get("/health")[0] == 200
    read_all("final", broker.address, recorder, [STOPPED, ALIVE])
    verdict = recorder.verdict()
    assert verdict.result is Result.VALID, "\n".join(report_lines(verdict))
    assert verdict.tally.acked == acked + 100


def _refusal(broker: BrokerProcess, place: Place) -> str:
    said: list[str] = []
    client = Producer({"bootstrap.servers": broker.address, "retries": 0, "enable.idempotence": False, "log_level": 0})
    client.produce(
        place.topic,
        b"x",
        partition=place.partition,
        on_delivery=lambda error, _: said.append(error.name() if error else ""),
    )
    assert client.flush(30) == 0
    return said[0]


def _path_of(broker: BrokerProcess, place: Place) -> str:
    (path,) = broker.data.glob(f"topics/*/{place.partition}/*.log")
    return str(path)


@pytest.mark.timeout(120)
def test_slow_syncs_make_larger_groups_and_double_nothing(start_traced: Start, recorder: Recorder) -> None:
    """200 ms a sync: everything is acknowledged in few groups, nothing twice, memory stays bounded."""
    broker = start_traced("delay_enter=200000")
    create_topic(broker.address, STOPPED.topic, 2)
    syncs = broker.metric("syncs_total")
    before = broker.resident_bytes
    producers = [RecordingProducer(f"p{number}", broker.address, recorder) for number in range(4)]
    began = time.monotonic()

    def write(producer: RecordingProducer) -> None:
        for number in range(2_000):
            producer.send((STOPPED, ALIVE)[number % 2], 500)
        producer.settle()

    threads = [threading.Thread(target=write, args=(producer,)) for producer in producers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    groups = broker.metric("syncs_total") - syncs
    grown = broker.resident_bytes - before
    read_all("final", broker.address, recorder, [STOPPED, ALIVE])

    verdict = recorder.verdict()
    assert verdict.result is Result.VALID, "\n".join(report_lines(verdict))
    assert verdict.tally.acked == verdict.tally.offsets_read == 8_000
    assert groups <= 10 * (time.monotonic() - began) + 4
    assert grown < 64 * MIB
    assert all(producer.troubles == [] for producer in producers)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("call", ["fdatasync", "sync_file_range"])
def test_partitions_that_are_synced_together_stop_if_that_fails(
    fragile_disk: Callable[[int], FragileDisk],
    start_broker: Start,
    need_tool: Callable[[str], str],
    recorder: Recorder,
    tmp_path: Path,
    call: str,
) -> None:
    """Whichever call fails: who was not acknowledged is stopped, the others go on, what was acknowledged is there."""
    places = [Place("faulty", number) for number in range(4)]
    out, injection = str(tmp_path / "strace.txt"), f"inject={call}:error=EIO:when=60..63"
    broker = start_broker(
        data=fragile_disk(96 * MIB).root / "data",
        prefix=[need_tool("strace"), "-f", "-o", out, "-e", f"trace={call}", "-e", injection],
        settings={"checkpoint_ms": 600_000},
    )
    create_topic(broker.address, "faulty", len(places))
    producer = RecordingProducer("p", broker.address, recorder, idempotent=False, retries=0)
    for _ in range(1_000):
        for place in places:
            producer.send(place)
        producer.settle()
        if producer.troubles:
            break
    assert producer.acked > 0
    status, body = broker.get("/health")
    stopped = [place for place in places if f"faulty-{place.partition}" in body]
    assert status == 503
    assert len(stopped) >= len(producer.troubles) > 0
    broker.kill()
    assert "EIO" in Path(out).read_text()
    broker.prefix = ()
    broker.start()
    read_all("final", broker.address, recorder, places)
    verdict = recorder.verdict()
    assert verdict.result is Result.VALID, "\n".join(report_lines(verdict))


@pytest.mark.timeout(120)
def test_a_sync_that_failed_in_the_kernel_stops_its_partition_and_nothing_else(
    start_broker: Start, recorder: Recorder
) -> None:
    """strace cannot see these: the kernel's word is forged, in a real broker."""
    places = [Place("faulty", number) for number in range(4)]
    broker = start_broker(command=(sys.executable, str(PLANT), "40"), settings={"sync_shares_flush": False})
    create_topic(broker.address, "faulty", len(places))
    producer = RecordingProducer("p", broker.address, recorder, idempotent=False, retries=0)
    for _ in range(1_000):
        for place in places:
            producer.send(place)
        producer.settle()
        if producer.troubles:
            break
    assert producer.troubles
    status, body = broker.get("/health")
    assert status == 503
    (stopped,) = (place for place in places if f"faulty-{place.partition}" in body)
    assert _refusal(broker, stopped) == "KAFKA_STORAGE_ERROR"
    acked = producer.acked
    for place in places:
        if place != stopped:
            producer.send(place)
    producer.settle()
    assert producer.acked == acked + len(places) - 1

    broker.kill()
    broker.start()
    read_all("final", broker.address, recorder, places)
    verdict = recorder.verdict()
    assert verdict.result is Result.VALID, "\n".join(report_lines(verdict))

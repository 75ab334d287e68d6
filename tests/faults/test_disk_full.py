"""A full disk refuses writes and nothing else, and is forgiven as soon as there is room."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from penstock.assure.report import report_lines
from penstock.assure.verdict import Result
from penstock.drills.broker_process import BrokerProcess
from penstock.drills.recording_clients import Place, Recorder, RecordingProducer, create_topic, delete_topic, read_all
from proof.storm.fragile_disk import FragileDisk

MIB = 1024 * 1024
KEPT, BALLAST = Place("kept", 0), Place("ballast", 0)
Start = Callable[..., BrokerProcess]


@pytest.fixture
def small_tmpfs(tmp_path: Path, fragile_disk: Callable[[int], FragileDisk]) -> Iterator[Path]:
    """A file system of 8 MiB in memory: it takes a part of a write, then nothing."""
    root = tmp_path / "tmpfs"
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(root)], check=True)
    yield root
    subprocess.run(["umount", "-l", str(root)], check=True)


@pytest.mark.timeout(120)
def test_a_full_tmpfs_refuses_and_recovers(small_tmpfs: Path, start_broker: Start, recorder: Recorder) -> None:
    """In the middle of a write: refused, reads go on, and room made by deleting a topic is used without a restart."""
    _fill_and_recover(start_broker(small_tmpfs / "data"), recorder)


@pytest.mark.timeout(120)
def test_a_full_ext4_refuses_and_recovers(
    fragile_disk: Callable[[int], FragileDisk], start_broker: Start, recorder: Recorder
) -> None:
    """The same on a file system that allocates its blocks late."""
    _fill_and_recover(start_broker(fragile_disk(24 * MIB).root / "data"), recorder)


def _fill_and_recover(broker: BrokerProcess, recorder: Recorder) -> None:
    create_topic(broker.address, KEPT.topic)
    create_topic(broker.address, BALLAST.topic)
    producer = RecordingProducer("p", broker.address, recorder)
    for _ in range(200):
        producer.send(KEPT, 500)
    producer.settle()

    refusals = fill(broker.address, BALLAST)

    assert refusals
    assert set(refusals) == {"KAFKA_STORAGE_ERROR"}
    assert broker.metric("write_failures_total") > 0
    read_all("while-full", broker.address, recorder, [KEPT])
    assert broker.get("/health")[0] == 200
    full_file = max(broker.data.glob("topics/*/0/*.log"), key=lambda path: path.stat().st_size)
    assert _is_whole(full_file), "the torn tail was cut back"

    delete_topic(broker.address, BALLAST.topic)
    for _ in range(200):
        producer.send(KEPT, 500)
    producer.settle()
    read_all("after", broker.address, recorder, [KEPT])
    broker.kill()
    broker.start()
    read_all("final", broker.address, recorder, [KEPT])

    verdict = recorder.verdict()
    assert verdict.result is Result.VALID, "\n".join(report_lines(verdict))
    assert verdict.tally.acked == 400
    assert broker.starts == 2
    assert "Traceback" not in broker.said


@pytest.mark.timeout(120)
def test_a_file_size_limit_is_a_full_disk(start_broker: Start, recorder: Recorder) -> None:
    """RLIMIT_FSIZE: the write is refused with an error, and the signal that comes with it kills nobody."""
    broker = start_broker(limits={resource.RLIMIT_FSIZE: 4 * MIB})
    create_topic(broker.address, KEPT.topic)
    create_topic(broker.address, BALLAST.topic)
    refusals = fill(broker.address, BALLAST)
    assert set(refusals) == {"KAFKA_STORAGE_ERROR"}

    producer = RecordingProducer("p", broker.address, recorder)
    for _ in range(200):
        producer.send(KEPT)
    producer.settle()
    read_all("final", broker.address, recorder, [KEPT])

    assert recorder.verdict().result is Result.VALID
    assert broker.starts == 1


def fill(address: str, place: Place) -> list[str]:
    """Write until writes are refused a few times; the names of the errors."""
    refusals: list[str] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refusals.append(error.name())

    client = Producer({"bootstrap.servers": address, "retries": 0, "enable.idempotence": False, "log_level": 0})
    for _ in range(100):
        for _ in range(20):
            client.produce(place.topic, b"\xa5" * 50_000, partition=place.partition, on_delivery=on_delivery)
        assert client.flush(60) == 0
        if len(refusals) > 40:
            break
    return refusals


def _is_whole(path: Path) -> bool:
    """Whether a segment ends with a whole batch."""
    data, at = path.read_bytes(), 0
    while at < len(data):
        at += 12 + int.from_bytes(data[at + 8 : at + 12], "big")
    return at == len(data)

"""Too many connections and readers that are too slow: bounded, and the others go on."""

from __future__ import annotations

import resource
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from penstock.assure.verdict import Result
from penstock.drills.broker_process import BrokerProcess
from penstock.drills.recording_clients import Place, Recorder, RecordingProducer, create_topic, read_all
from penstock.kafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from proof.abuse import abuse_test as siege
from proof.abuse.raw_client import PlainClient, frame_of

MIB = 1024 * 1024
CROWD = 5_000
PLACE = Place("crowded", 0)
Start = Callable[..., BrokerProcess]


def _write(producer: RecordingProducer, count: int, size: int = 0) -> None:
    for _ in range(count):
        producer.send(PLACE, size)
    producer.settle()


@pytest.mark.timeout(120)
def test_connections_beyond_the_file_handles_are_refused_and_the_others_go_on(
    start_broker: Start, recorder: Recorder
) -> None:
    """256 handles, 400 callers: those without one are closed at once, clients from before do not notice."""
    broker = start_broker(limits={resource.RLIMIT_NOFILE: 256})
    create_topic(broker.address, PLACE.topic)
    producer = RecordingProducer("p", broker.address, recorder)
    _write(producer, 100)
    with ExitStack() as crowd:
        callers = [crowd.enter_context(PlainClient(broker.port)) for _ in range(400)]
        refused = _wait_for_refusals(callers, 130)
        _write(producer, 100)
        assert 130 <= refused < 390
        assert "no file handles" in broker.said
    _write(producer, 100)
    read_all("final", broker.address, recorder, [PLACE])

    verdict = recorder.verdict()
    assert verdict.result is Result.VALID
    assert verdict.tally.acked == 300
    assert producer.troubles == []
    assert broker.starts == 1
    assert broker.is_running
    assert "Traceback" not in broker.said


@pytest.mark.timeout(200)
def test_a_siege_leaves_a_normal_client_alone(start_broker: Start) -> None:
    """Mutated frames, count bombs and 5,000 callers that never end a request: same process, memory flat, all acked."""
    with _all_file_handles() as most:
        broker = start_broker(settings=siege.SETTINGS)
        callers = CROWD if most == resource.RLIM_INFINITY else min(CROWD, most - 500)
        outcome = siege.Siege(broker, seed=5, tell=lambda _: None).run(frames=1_000, connections=callers, calm_s=1.0)
    calm, *_, crowded, _ = outcome.phases
    assert outcome.troubles == []
    assert outcome.pulse.p99_ms(crowded.from_s, crowded.until_s) > 0
    assert crowded.resident_bytes - calm.resident_bytes < 64 * MIB


@contextmanager
def _all_file_handles() -> Iterator[int]:
    """As many as this user may have, for the broker as well; how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def _wait_for_refusals(callers: list[PlainClient], least: int) -> int:
    deadline = time.monotonic() + 30
    refused = 0
    while refused < least and time.monotonic() < deadline:
        refused = sum(_is_closed(caller.sock) for caller in callers)
    return refused


def _is_closed(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return sock.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@pytest.mark.timeout(120)
def test_slow_readers_keep_memory_flat_and_hurt_nobody(start_broker: Start, recorder: Recorder) -> None:
    """Six readers ask for everything a hundred times and take four bytes of it; others write and read as ever."""
    broker = start_broker(settings={"inflight_bytes_max_connection": MIB, "fetch_bytes_max": 4 * MIB})
    create_topic(broker.address, PLACE.topic)
    producer = RecordingProducer("p", broker.address, recorder)
    _write(producer, 600, 20_000)
    before = broker.resident_bytes
    wanted = FetchPartition(PLACE.partition, fetch_offset=0, partition_max_bytes=64 * MIB)
    request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(PLACE.topic, partitions=[wanted])])
    most = 0
    with ExitStack() as crowd:
        readers = [crowd.enter_context(PlainClient(broker.port)) for _ in range(6)]
        for reader in readers:
            for number in range(100):
                reader.send(frame_of(request, 12, number))
        for _ in range(4):
            for reader in readers:
                assert len(reader.sock.recv(1)) == 1
            _write(producer, 300)
            read_all(f"others-{len(readers)}-{most}", broker.address, recorder, [PLACE])
            most = max(most, broker.resident_bytes - before)
    assert most < 96 * MIB
    _write(producer, 100)
    read_all("final", broker.address, recorder, [PLACE])
    assert recorder.verdict().result is Result.VALID
    assert producer.troubles == []

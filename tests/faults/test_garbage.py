"""Garbage on the wire: refused at once, told in one line, and nobody else notices."""

from __future__ import annotations

import os
import random
import socket
import time
from collections.abc import Callable
from functools import partial

import pytest

from penstock.assure.report import report_lines
from penstock.assure.verdict import Result
from penstock.drills.broker_process import BrokerProcess
from penstock.drills.recording_clients import Place, Recorder, RecordingProducer, Worker, create_topic, read_all
from penstock.kafka.wire.apis import APIS, ApiKey
from proof.abuse.abuse_test import HangError, throw
from proof.abuse.malformed_frames import OPENINGS, count_bomb, honest_requests, mutate
from proof.abuse.raw_client import PlainClient

MIB = 1024 * 1024
MUTANTS = 20_000
UNHURT = Place("unhurt", 0)
Start = Callable[..., BrokerProcess]


def _closings(broker: BrokerProcess) -> list[str]:
    return [line for line in broker.said.splitlines() if " connection closed " in line]


@pytest.mark.timeout(120)
def test_nonsense_is_closed_at_once_with_one_line_that_says_why(start_broker: Start) -> None:
    """Impossible lengths, TLS and HTTP on the plain port: one log line each with its reason, nothing allocated."""
    broker = start_broker()
    before = broker.resident_bytes
    for number, (name, opening) in enumerate(OPENINGS.items(), start=1):
        with PlainClient(broker.port) as client:
            client.sock.settimeout(5)
            client.sock.sendall(opening)
            assert client.drain() == 0, name
        lines = _closings(broker)
        assert len(lines) == number, name
        assert "reason=" in lines[-1], name
    assert "TLS" in broker.said
    assert broker.resident_bytes - before < 2 * MIB


@pytest.mark.timeout(120)
def test_a_count_larger_than_its_bytes_allocates_nothing(start_broker: Start) -> None:
    """Two billion announced behind the header of every API and version, a count where the body begins with one."""
    broker = start_broker()
    before = broker.resident_bytes
    for key, api in APIS.items():
        for version in range(api.min_version, api.max_version + 1):
            with PlainClient(broker.port) as client:
                client.sock.settimeout(5)
                client.send(count_bomb(key, version))
                client.sock.shutdown(socket.SHUT_WR)
                client.drain()
    assert broker.is_running
    assert broker.resident_bytes - before < 8 * MIB
    assert "Traceback" not in broker.said


@pytest.mark.timeout(200)
def test_mutated_frames_hurt_nobody(start_broker: Start, recorder: Recorder) -> None:
    """20,000 spoiled requests of every API and version: answered or closed, while a normal client goes on."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))
    repeat = f"seed {seed}; repeat: SEED={seed} .venv/bin/pytest {__file__}"
    chance = random.Random(seed)
    broker = start_broker(settings={"topics_max": 200, "partitions_max": 500})
    pid = broker.pid
    create_topic(broker.address, "mutants", 2)
    create_topic(broker.address, UNHURT.topic)
    producer = RecordingProducer("p", broker.address, recorder)
    working = Worker("unhurt", partial(_write_a_little, producer))
    honest = list(honest_requests(chance, "mutants"))
    before = broker.resident_bytes
    mutants = (mutate(chance, honest[number % len(honest)].frame) for number in range(MUTANTS))
    try:
        assert throw(broker.port, mutants) == MUTANTS
    except HangError as hang:
        pytest.fail(f"{hang}: {repeat}")
    working.join()
    producer.settle()
    read_all("final", broker.address, recorder, [UNHURT])

    verdict = recorder.verdict()
    assert verdict.result is Result.VALID, "\n".join([*report_lines(verdict), repeat])
    assert verdict.tally.acked == verdict.tally.offsets_read == verdict.tally.writes > 100, repeat
    assert producer.troubles == [], repeat
    assert (broker.is_running, broker.pid) == (True, pid), repeat
    assert broker.get("/health")[0] == 200, repeat
    assert broker.resident_bytes - before < 96 * MIB, repeat
    assert "Traceback" not in broker.said, repeat
    assert broker.stop() == 0, repeat


def _write_a_little(producer: RecordingProducer) -> None:
    for _ in range(5):
        producer.send(UNHURT)
    producer.settle()


@pytest.mark.timeout(60)
def test_a_request_that_never_ends_is_closed_at_its_deadline(start_broker: Start) -> None:
    """Byte by byte, never silent and never done: the deadline is for the whole request."""
    broker = start_broker(settings={"request_deadline_ms": 1000})
    for opening in (b"\x00\x00\x10", b"\x00\x00\x10\x00"):
        with PlainClient(broker.port) as client:
            began = time.monotonic()
            client.sock.settimeout(0.1)
            client.sock.sendall(opening)
            assert _dribble_until_closed(client, 20)
            assert 0.9 < time.monotonic() - began < 10
    assert broker.said.count("request_deadline_ms") == 2


def _dribble_until_closed(client: PlainClient, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            if client.sock.recv(1) == b"":
                return True
        except TimeoutError:
            pass
        except ConnectionError:
            return True
        try:
            client.sock.sendall(b"\x00")
        except ConnectionError:
            return True
    return False


def test_every_api_and_version_is_among_the_mutants() -> None:
    """What is mutated is everything that is served."""
    seen = {(honest.api.key, honest.version) for honest in honest_requests(random.Random(0), "x")}
    served = {(k, v) for k, api in APIS.items() for v in range(api.min_version, api.max_version + 1)}
    assert seen == served
    assert (ApiKey.PRODUCE, 9) in seen

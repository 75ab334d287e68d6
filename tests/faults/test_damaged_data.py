"""A real broker on damaged data: serves the rest, names what is wrong."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.drills.broker_process import BrokerProcess
from penstock.drills.recording_clients import create_topic
from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from penstock.kafka.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from proof.abuse.malformed_frames import a_batch
from proof.abuse.raw_client import PlainClient

TOPIC = "damaged"
PARTITIONS, BATCHES = 20, 4
Start = Callable[..., BrokerProcess]
DOCTOR = "import sys; from penstock.cli.main import main; sys.exit(main(['doctor', '--json', '--data', sys.argv[1]]))"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_a_broker_serves_all_but_the_damaged_batch(start_broker: Start, end: str) -> None:
    """One byte in each of twenty partitions: an error there, all others served, doctor and log name every place."""
    seed = int(os.environ.get("SEED", random.SystemRandom().randrange(2**32)))
    repeat = f"seed {seed}; repeat: SEED={seed} .venv/bin/pytest {__file__}"
    broker = start_broker()
    create_topic(broker.address, TOPIC, PARTITIONS)
    with PlainClient(broker.port) as client:
        for _ in range(BATCHES):
            _produce_everywhere(client)
    broker.stop() if end == "stopped" else broker.kill()
    spoiled = _flip_bytes(broker.data, random.Random(seed))

    found = _doctor(broker.data)
    named = {f["partition"]: (f["offset"], Path(f["file"]).name, f["position"]) for f in found if f["damage"]}
    assert named == {p: (batch, f"{0:020d}.log", batch * size) for p, (batch, size) in spoiled.items()}, repeat

    broker.start()
    with PlainClient(broker.port) as client:
        for partition, (damaged, _) in spoiled.items():
            for offset in range(BATCHES):
                got = _fetch(client, partition, offset)
                if offset == damaged:
                    got = _fetch(client, partition, offset)  # again and again, as clients do
                    assert got.error_code == ErrorCode.CORRUPT_MESSAGE, (partition, offset, repeat)
                    assert not got.records, repeat
                else:
                    assert (got.error_code, got.high_watermark) == (0, BATCHES), (partition, offset, repeat)
                    assert b"value" in bytes(got.records or b""), repeat
        _produce_everywhere(client)
        assert all(_fetch(client, partition, BATCHES).error_code == 0 for partition in spoiled), repeat
    for partition, (damaged, _) in spoiled.items():
        assert broker.said.count(f"partition={TOPIC}-{partition} offset={damaged} ") == 1, repeat
    status, body = broker.get("/health")
    known = {f"{TOPIC}-{partition}": [damaged] for partition, (damaged, _) in spoiled.items()}
    assert (status, json.loads(body)) == (200, {"status": "damaged records", "stopped": {}, "damaged": known}), repeat
    assert broker.metric("partitions_damaged") == PARTITIONS
    assert "Traceback" not in broker.said


def _produce_everywhere(client: PlainClient) -> None:
    data = [PartitionProduceData(number, a_batch(b"value")) for number in range(PARTITIONS)]
    request = ProduceRequest(None, -1, 30_000, [TopicProduceData(TOPIC, partition_data=data)])
    answer = client.ask(request, 9, ProduceResponse)
    assert [p.error_code for p in answer.responses[0].partition_responses] == [0] * PARTITIONS


def _fetch(client: PlainClient, partition: int, offset: int) -> PartitionData:
    wanted = FetchPartition(partition, fetch_offset=offset, partition_max_bytes=1)
    request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(TOPIC, partitions=[wanted])])
    return client.ask(request, 12, FetchResponse).responses[0].partitions[0]


def _flip_bytes(data: Path, chance: random.Random) -> dict[int, tuple[int, int]]:
    """Flip one byte in the segment of each partition; which batch was hit, and how large batches are."""
    hit = {}
    for path in data.glob("topics/*/*/*.log"):
        content = bytearray(path.read_bytes())
        size = len(content) // BATCHES
        at = chance.randrange(len(content))
        content[at] ^= 1 << chance.randrange(8)
        path.write_bytes(content)
        hit[int(path.parent.name)] = (at // size, size)
    assert len(hit) == PARTITIONS
    return hit


def _doctor(data: Path) -> list[dict[str, object]]:
    done = subprocess.run([sys.executable, "-c", DOCTOR, str(data)], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    findings: list[dict[str, object]] = json.loads(done.stdout)["findings"]
    return findings

"""A wall clock that jumps changes neither order nor what is kept."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import libfaketime
import pytest

from penstock.assure.report import report_lines
from penstock.assure.verdict import Result
from penstock.drills.broker_process import BrokerProcess
from penstock.drills.recording_clients import Place, Recorder, RecordingProducer, create_topic, read_all
from penstock.kafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from proof.abuse.raw_client import PlainClient

PLACE = Place("clock", 0)
HOUR_S = 3600
RETENTION_CHECK_MS = 100
Start = Callable[..., BrokerProcess]


def faked(clock: Path) -> list[str]:
    """A command prefix under which the wall clock says what `clock` says; the monotonic one is left alone."""
    _, variables = libfaketime.get_reload_information()
    variables = {**variables, "FAKETIME_TIMESTAMP_FILE": str(clock)}
    return ["env", *(f"{name}={value}" for name, value in variables.items())]


def wait_ms(broker: BrokerProcess, offset: int, ms: int) -> None:
    """Let the broker's own clock run for so long: it answers an empty fetch when that time has passed."""
    with PlainClient(broker.port) as client:
        wanted = FetchPartition(0, fetch_offset=offset, partition_max_bytes=1024)
        request = FetchRequest(max_wait_ms=ms, min_bytes=1, topics=[FetchTopic(PLACE.topic, partitions=[wanted])])
        client.ask(request, 11, FetchResponse)


@pytest.mark.parametrize("jump", ["+1h", "-1h"])
@pytest.mark.timeout(120)
def test_a_jump_of_the_wall_clock_expires_nothing(
    start_broker: Start, recorder: Recorder, tmp_path: Path, jump: str
) -> None:
    """Records kept for half an hour are still there when the clock jumps by an hour, and new ones follow them."""
    clock = tmp_path / "clock"
    clock.write_text("+0")
    prefix = faked(clock)
    broker = start_broker(prefix=prefix, settings={"retention_check_ms": RETENTION_CHECK_MS})
    create_topic(broker.address, PLACE.topic, settings={"retention.ms": "1800000", "segment.bytes": "1048576"})
    producer = RecordingProducer("p", broker.address, recorder)
    for _ in range(200):
        producer.send(PLACE)
    producer.settle()

    clock.write_text(jump)
    seen = subprocess.run(
        [*prefix, sys.executable, "-c", "import time; print(time.time())"], capture_output=True, text=True, check=True
    )
    assert abs(float(seen.stdout) - time.time()) > HOUR_S / 2, "the clock was not faked"
    wait_ms(broker, 200, 10 * RETENTION_CHECK_MS)

    for _ in range(200):
        producer.send(PLACE)
    producer.settle()
    read_all("final", broker.address, recorder, [PLACE])
    verdict = recorder.verdict()
    assert verdict.result is Result.VALID, "\n".join(report_lines(verdict))
    assert verdict.tally.acked == verdict.tally.offsets_read == 400

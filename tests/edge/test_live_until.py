"""GET /live with until=: a stream that ends by itself, read by a real curl and a WebSocket client."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from confluent_kafka import Producer
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.edge.live_stage import DEADLINE_S, Curl, Stage, until


@pytest.fixture(params=[1, 1_000], ids=["history", "recent"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Once with readers of history, once with all that is needed in memory."""
    built = Stage(tmp_path_factory.mktemp("until"), live_recent_max=request.param)
    yield built
    assert "Traceback" not in built.edge_errors, built.edge_errors
    built.close()


class Whole:
    """A stream that has ended: its events, and curl's exit status."""

    def __init__(self, stage: Stage, curl: str, path: str) -> None:
        done = subprocess.run(
            [curl, "-sSN", "-g", stage.url + path], capture_output=True, timeout=DEADLINE_S, check=False
        )
        self.status = done.returncode
        blocks = [dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
                  for block in done.stdout.decode().split("\n\n") if "data: " in block]  # fmt: skip
        self.names = [block["event"] for block in blocks]
        self.json: list[dict[str, Any]] = [json.loads(block["data"]) for block in blocks]

    @property
    def places(self) -> list[tuple[int, int]]:
        return [(each["partition"], each["offset"]) for each in self.json if "value" in each]

    @property
    def end(self) -> dict[str, Any]:
        return self.json[-1]


@pytest.fixture
def read(stage: Stage, need_tool: Callable[[str], str]) -> Callable[[str], Whole]:
    def whole(path: str) -> Whole:
        found = Whole(stage, need_tool("curl"), path)
        assert found.status == 0
        assert found.names[0] == "penstock.start"
        assert found.names[-1] == "penstock.end"
        assert found.end["reason"] == "until"
        return found

    return whole


Read = Callable[[str], Whole]


def test_a_stream_ends_with_what_was_stored_before_the_request(stage: Stage, read: Read) -> None:
    """All of it, once; the token of the end goes on behind it."""
    assert read("/live/decisions?from=beginning&until=now").names == ["penstock.start", "penstock.end"]
    stage.send("decisions", 30, partition=0)
    stage.send("decisions", 20, partition=1)
    for word in ("now", "end"):
        found = read(f"/live/decisions?from=beginning&until={word}")
        assert sorted(found.places) == [(0, n) for n in range(30)] + [(1, n) for n in range(20)]
        assert found.end["resume"] == "decisions=0:30,1:20"
    assert read("/live/decisions?until=now").places == []
    stage.send("decisions", 1)
    assert read("/live/decisions?until=now&after=decisions=0:30,1:20").places == [(0, 30)]
    key = read("/live/decisions?from=beginning&until=now&key=none")
    assert (key.places, key.end["resume"]) == ([], "decisions=0:31,1:20")


def test_offsets_end_a_stream_before_them(stage: Stage, read: Read, need_tool: Callable[[str], str]) -> None:
    """Neighbouring ranges give each record once; an offset that is not there yet is waited for."""
    stage.send("decisions", 10, partition=0)
    stage.send("decisions", 3, partition=1)
    assert read("/live/decisions?from=0:0&until=0:4").places == [(0, n) for n in range(4)]
    assert read("/live/decisions?from=0:4&until=0:10").places == [(0, n) for n in range(4, 10)]
    assert read("/live/decisions?from=0:9,1:2&until=decisions=0:3,1:1").places == []
    later = Curl(need_tool("curl"), f"{stage.url}/live/decisions?from=0:8,1:2&until=0:12,1:4")
    assert [event.place[1:] for event in later.take(3)] in (
        [(0, 8), (0, 9), (1, 2)], [(1, 2), (0, 8), (0, 9)], [(0, 8), (1, 2), (0, 9)]
    )  # fmt: skip
    stage.send("decisions", 5, partition=0)
    assert [event.place[1:] for event in later.take(2)] == [(0, 10), (0, 11)]
    stage.send("decisions", 5, partition=1)
    assert [event.place[1:] for event in later.take(1)] == [(1, 3)]
    (end,) = later.take(1)
    assert (end.json["event"], end.json["resume"]) == ("penstock.end", "decisions=0:12,1:4")
    assert later.next() is None
    later.close()


def test_a_time_ends_a_stream_before_the_first_record_as_young_as_it(stage: Stage, read: Read) -> None:
    stage.send("ticks", 3)
    until(lambda: now_ms() > stamps(read)[-1])
    stage.send("ticks", 3)
    moment_ms = stamps(read)[3]
    assert read(f"/live/ticks?from=beginning&until={iso(moment_ms)}").places == [(0, 0), (0, 1), (0, 2)]
    assert read("/live/ticks?from=beginning&until=2001-01-01T00:00:00Z").places == []


def test_a_time_in_the_future_is_waited_for(stage: Stage, need_tool: Callable[[str], str]) -> None:
    """On a busy machine the time may come before the records are stored: then with a later time and another topic."""
    for topic, ahead_ms in (("prices", 4_000), ("ticks", 45_000)):
        moment_ms = now_ms() + ahead_ms
        live = Curl(need_tool("curl"), f"{stage.url}/live/{topic}?until={iso(moment_ms)}")
        live.started()
        stage.send(topic, 2)
        if now_ms() < moment_ms:
            break
        live.close()
    *records, end = live.take(3)
    assert [record.name for record in records] == [topic, topic]
    assert (end.json["event"], end.json["reason"]) == ("penstock.end", "until")
    assert now_ms() >= moment_ms
    live.close()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def stamps(read: Read) -> list[int]:
    found = read("/live/ticks?from=beginning&until=now").json
    return [each["stored_ms"] for each in found if "value" in each]


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def test_deleted_records_and_gaps_do_not_keep_a_stream_open(stage: Stage, read: Read) -> None:
    stage.send("ticks", 8)
    stage.trim("ticks", 5)
    gap = read("/live/ticks?after=ticks=0:1&until=0:7")
    assert gap.names[-1] == "penstock.end"
    assert gap.places[-1] == (0, 6)
    stage.trim("ticks", 8)
    assert read("/live/ticks?from=beginning&until=now").names[-1] == "penstock.end"
    again = read("/live/ticks?after=ticks=0:999999&until=now")
    assert again.names == ["penstock.start", "penstock.gap", "penstock.end"]
    assert again.end["resume"] == "ticks=0:8"


def test_the_end_of_a_transaction_does_not_keep_a_stream_open(stage: Stage, read: Read) -> None:
    """Its mark takes the last offset, at which no record stands."""
    producer = Producer({"bootstrap.servers": stage.queue, "transactional.id": "t", "log_level": 0})
    producer.init_transactions(DEADLINE_S)
    for _ in range(2):
        producer.begin_transaction()
        producer.produce("prices", b'{"n":1}')
        producer.commit_transaction(DEADLINE_S)
        read("/live/prices?until=now")
        for start in ("beginning", "-1"):
            assert read(f"/live/prices?from={start}&until=now").end["resume"] == f"prices=0:{ends(stage)}"
    assert read("/live/prices?from=beginning&until=now").places == [(0, 0), (0, 2)]


def ends(stage: Stage) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": stage.queue, "group.id": "g", "log_level": 0})
    _, high = consumer.get_watermark_offsets(TopicPartition("prices", 0), timeout=DEADLINE_S)
    consumer.close()
    return int(high)


def test_a_pattern_ends_when_all_of_its_topics_have(stage: Stage, read: Read) -> None:
    stage.send("decisions", 2)
    stage.send("ticks", 2)
    found = read("/live/*s?from=beginning&until=now")
    assert len(found.places) == 4
    assert read("/live/*s?from=beginning&until=decisions=0:1,1:0;ticks=0:1;prices=0:0").places == [(0, 0), (0, 0)]


def test_a_websocket_is_closed_with_code_1000(stage: Stage) -> None:
    stage.send("decisions", 3)
    url = f"ws://127.0.0.1:{stage.port}/live/decisions?from=beginning&until=now"
    heard: list[dict[str, Any]] = []
    with (
        connect(url, open_timeout=DEADLINE_S, proxy=None) as live,
        pytest.raises(ConnectionClosed) as closed,
    ):
        heard.extend(iter(lambda: json.loads(live.recv(DEADLINE_S)), None))
    assert len(heard) == 5
    assert (heard[-1]["event"], heard[-1]["reason"]) == ("penstock.end", "until")
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (1000, "until; after=decisions=0:3,1:0")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("until=later", b"until is now, end, latest, offsets like 0:124,1:456, a resume token or a time like"),
        ("until=7:1", b"until: topic decisions has no partition 7, only 0 to 1"),
        ("untill=now", b"known are from, after, until, key"),
    ],
)
def test_what_is_no_end_is_refused_in_a_sentence(stage: Stage, query: str, told: bytes) -> None:
    status, body, _ = stage.get(f"/live/decisions?{query}")
    assert (status, told in body) == (400, True)


def test_streams_that_ended_hold_nothing(stage: Stage, read: Read) -> None:
    stage.send("decisions", 5)
    for _ in range(20):
        assert len(read("/live/decisions?from=beginning&until=now").places) == 5
    until(lambda: stage.metric("clients") == 0)
    until(lambda: stage.metric("catch_ups") == 0)

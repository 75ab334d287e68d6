"""Edge and broker stopped and killed under live clients: whoever comes back with its token misses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.edge.live_stage import DEADLINE_S, Curl, Event, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    built = Stage(tmp_path)
    yield built
    built.close()


def test_a_killed_edge_costs_no_message(stage: Stage, need_tool: Callable[[str], str]) -> None:
    """Killed three times, with records before, while and after it is away: each offset once, in order."""
    heard: list[Event] = []
    token = ""
    for _ in range(3):
        headers = ["-H", f"Last-Event-ID: {token}"] if token else []
        live = Curl(need_tool("curl"), f"{stage.url}/live/decisions", *headers)
        try:
            live.started()
            stage.send("decisions", 20, partition=0)
            stage.send("decisions", 20, partition=1)
            heard += live.take(40 * (1 if not token else 2))
            token = heard[-1].id
            stage.kill_edge()
            stage.send("decisions", 40, partition=0)
        finally:
            live.close()
        stage.start_edge()
    for partition, count in ((0, 3 * 20 + 2 * 40), (1, 3 * 20)):
        assert [event.place[2] for event in heard if event.place[1] == partition] == list(range(count))


def test_a_crowd_that_comes_back_needs_no_readers_of_history(tmp_path: Path, need_tool: Callable[[str], str]) -> None:
    """What was written while the edge was away is in its memory at the start, for all of them."""
    stage = Stage(tmp_path, live_catch_ups_max=1, live_catch_up_wait_ms=1)
    crowd: list[Curl] = []
    try:
        stage.kill_edge()
        stage.send("decisions", 30, partition=0)
        stage.send("decisions", 30, partition=1)
        stage.start_edge()
        crowd += [Curl(need_tool("curl"), f"{stage.url}/live/decisions?after=decisions=0:5,1:7") for _ in range(20)]
        stage.send("decisions", 1)
        for each in crowd:
            heard = [event.place[1:] for event in each.take(49)]
            assert sorted(heard) == [(0, offset) for offset in range(5, 31)] + [(1, offset) for offset in range(7, 30)]
    finally:
        for each in crowd:
            each.close()
        stage.close()


def test_a_broker_killed_under_live_clients_costs_no_message(stage: Stage, need_tool: Callable[[str], str]) -> None:
    """The stream stays open and goes on when the queue is back, live and in history."""
    live = Curl(need_tool("curl"), f"{stage.url}/live/decisions")
    try:
        live.started()
        for _ in range(3):
            stage.send("decisions", 10)
            stage.broker.kill()
            stage.broker.start()
        stage.send("decisions", 1)
        assert [event.place[2] for event in live.take(31)] == list(range(31))
    finally:
        live.close()


def test_an_edge_that_stops_says_goodbye(stage: Stage, need_tool: Callable[[str], str]) -> None:
    """SIGTERM: each client hears that it stops and where it stands, and the process ends with status 0 at once."""
    live = Curl(need_tool("curl"), f"{stage.url}/live/decisions")
    reading = Curl(need_tool("curl"), f"{stage.url}/live/decisions?from=beginning")
    with connect(f"ws://127.0.0.1:{stage.port}/live/decisions", open_timeout=DEADLINE_S, proxy=None) as socket:
        socket.recv(DEADLINE_S)
        live.started()
        reading.started()
        stage.send("decisions", 1)
        last = live.take(1)[0]
        assert socket.recv(DEADLINE_S)
        assert stage.stop_edge() == 0
        end = live.take(1)[0]
        assert (end.name, end.json["reason"], end.id) == ("penstock.end", "stopping", last.id)
        assert live.next() is None
        assert "stopping" in str(socket.recv(DEADLINE_S))
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(DEADLINE_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1001
    live.close()
    reading.close()
    assert "Traceback" not in stage.edge_errors, stage.edge_errors


def test_damage_in_history_is_told_and_passed_over(stage: Stage, need_tool: Callable[[str], str]) -> None:
    """One byte of a stored batch is wrong: the client hears which offsets are lost, and gets all the others."""
    for _ in range(9):
        stage.send("ticks", 1)
    stage.kill_edge()
    stage.broker.stop()
    (log,) = [path for path in stage.broker.data.rglob("*.log") if b'"n":4,' in path.read_bytes()]
    data = bytearray(log.read_bytes())
    data[data.index(b'"n":4,')] ^= 1
    log.write_bytes(data)
    stage.broker.start()
    stage.start_edge()
    live = Curl(need_tool("curl"), f"{stage.url}/live/ticks?from=beginning")
    try:
        heard = live.take(9)
        (gap,) = [event for event in heard if event.name == "penstock.gap"]
        assert (gap.json["from"], gap.json["to"], gap.json["missed"]) == (4, 5, 1)
        assert gap.json["reason"] == "damaged on disk"
        assert [event.place[2] for event in heard if event is not gap] == [0, 1, 2, 3, 5, 6, 7, 8]
        stage.send("ticks", 1)
        assert live.take(1)[0].place[2] == 9
    finally:
        live.close()

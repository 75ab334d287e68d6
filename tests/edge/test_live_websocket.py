"""/live by WebSocket, with the `websockets` client, on a real edge."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from tests.edge.live_stage import DEADLINE_S, Stage, until

PAD = 4_000
MANY = 4_000


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    built = Stage(tmp_path_factory.mktemp("websocket"), live_goodbye_ms=20_000)
    yield built
    built.close()


def opened(stage: Stage, path: str, **more: Any) -> AbstractContextManager[ClientConnection]:
    return connect(f"ws://127.0.0.1:{stage.port}{path}", open_timeout=DEADLINE_S, proxy=None, **more)


def receive(live: ClientConnection) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(live.recv(DEADLINE_S))
    return found


def started(live: ClientConnection) -> str:
    first = receive(live)
    assert first["event"] == "penstock.start"
    token: str = first["resume"]
    return token


def test_messages_are_the_same_envelope_as_text(stage: Stage) -> None:
    """Live, then resumed by the token of the first."""
    with opened(stage, "/live/decisions") as live:
        started(live)
        first = stage.sent
        stage.send("decisions", 2, key=b"k")
        one, two = receive(live), receive(live)
    assert (one["topic"], one["key"], one["value"]["n"], two["value"]["n"]) == ("decisions", "k", first, first + 1)
    with opened(stage, f"/live/decisions?after={one['resume']}") as live:
        started(live)
        assert receive(live) == two


def test_what_a_client_says_is_ignored_and_pings_are_answered(stage: Stage) -> None:
    """It goes on as if nothing had been said."""
    with opened(stage, "/live/decisions") as live:
        started(live)
        live.send("hello")
        live.send(b"\x00" * 1000)
        assert live.ping().wait(DEADLINE_S)
        first = stage.sent
        stage.send("decisions", 1)
        assert receive(live)["value"]["n"] == first


def test_who_says_too_much_at_once_is_closed(stage: Stage) -> None:
    """A client has nothing to say: a large message is no reason to hold memory."""
    with opened(stage, "/live/decisions", max_size=None) as live:
        started(live)
        live.send(b"\x00" * 1_000_000)
        with pytest.raises(ConnectionClosed) as closed:
            live.recv(DEADLINE_S)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/live/decisions", {"Origin": "http://evil.example"}, 403),
        ("/live/nothing", {}, 404),
        ("/live/decisions?from=later", {}, 400),
        ("/live/fleeting?after=fleeting=0:1", {}, 400),
    ],
)
def test_a_connection_that_must_not_be_is_refused_before_it_is_one(
    stage: Stage, path: str, headers: dict[str, str], status: int
) -> None:
    """A page of a foreign origin above all: a browser lets every page open a WebSocket to us."""
    with pytest.raises(InvalidStatus) as refused, opened(stage, path, additional_headers=headers):
        pass
    assert refused.value.response.status_code == status


def test_our_own_page_may_connect(stage: Stage) -> None:
    with opened(stage, "/live/decisions", additional_headers={"Origin": stage.url}) as live:
        started(live)


def test_a_slow_client_is_closed_with_the_token(stage: Stage) -> None:
    """Code 4008, and the reason says where to go on; before it stands the same as a message."""
    before = stage.metric("disconnected_slow_total")
    with opened(stage, "/live/small", max_queue=1) as live:
        started(live)
        first = stage.sent
        stage.send("decisions", MANY, pad=PAD)
        until(lambda: stage.metric("disconnected_slow_total") == before + 1)
        heard: list[dict[str, Any]] = []
        with pytest.raises(ConnectionClosed) as closed:
            heard.extend(iter(lambda: receive(live), None))
    end = heard.pop()
    assert (end["event"], end["reason"]) == ("penstock.end", "slow")
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4008, f"slow; after={end['resume']}")
    assert [each["value"]["n"] for each in heard] == list(range(first, first + len(heard)))
    with opened(stage, f"/live/small?after={end['resume']}") as live:
        started(live)
        assert receive(live)["value"]["n"] == first + len(heard)


def test_clients_that_leave_are_forgotten(stage: Stage) -> None:
    until(lambda: stage.metric("clients") == 0)
    with opened(stage, "/live/decisions") as live, opened(stage, "/live/*") as other:
        started(live)
        started(other)
        assert stage.metric("clients") == 2
    until(lambda: stage.metric("clients") == 0)
    assert "Traceback" not in stage.edge_errors, stage.edge_errors

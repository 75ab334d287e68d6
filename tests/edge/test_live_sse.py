"""/live by server-sent events, read by a real curl from a real edge on a real broker."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from tests.edge.live_stage import Curl, Stage, places, until


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    built = Stage(tmp_path_factory.mktemp("live"), live_beat_ms=200, live_recent_max=1)
    yield built
    built.close()


Open = Callable[..., Curl]


@pytest.fixture
def curl(stage: Stage, need_tool: Callable[[str], str]) -> Iterator[Open]:
    opened: list[Curl] = []

    def follow(path: str, *flags: str) -> Curl:
        opened.append(Curl(need_tool("curl"), stage.url + path, *flags))
        return opened[-1]

    yield follow
    for each in opened:
        each.close()


def test_what_happens_now_is_heard_and_what_was_before_is_not(stage: Stage, curl: Open) -> None:
    """The envelope says what it is, where it stands, and where to go on."""
    earlier = curl("/live/decisions")
    earlier.started()
    stage.send("decisions", 2)
    earlier.take(2)
    live = curl("/live/decisions")
    token = live.started().id
    first = stage.sent
    stage.send("decisions", 3, key=b"card-1")
    heard = live.take(3)
    assert [event.n for event in heard] == [first, first + 1, first + 2]
    assert {event.name for event in heard} == {"decisions"}
    assert heard[0].json["key"] == "card-1"
    assert heard[0].json["resume"] == heard[0].id != token
    again = curl(f"/live/decisions?after={heard[0].id}").take(2)
    assert [event.n for event in again] == [first + 1, first + 2]


def test_all_ways_to_begin(stage: Stage, curl: Open) -> None:
    """The beginning, offsets, a moment, a token in the address or in the header of a browser that comes back."""
    stage.send("decisions", 3, partition=0)
    everything = curl("/live/decisions?from=beginning").take(3)
    assert [event.place[2] for event in everything] == [0, 1, 2]
    from_offset = curl("/live/decisions?from=0:1").take(2)
    assert [event.place for event in from_offset] == [("decisions", 0, 1), ("decisions", 0, 2)]
    moment_ms = everything[2].json["stored_ms"]
    (since,) = curl(f"/live/decisions?from={iso(moment_ms)}").take(1)
    assert since.place == next(event.place for event in everything if event.json["stored_ms"] >= moment_ms)
    by_header = curl("/live/decisions", "-H", "Last-Event-ID: decisions=0:2,1:0").take(1)
    assert by_header[0].place == ("decisions", 0, 2)


def iso(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat().replace("+00:00", "Z")


def test_history_meets_what_happens_without_gap_or_repeat(stage: Stage, curl: Open) -> None:
    """Clients that begin at the beginning while records come get each offset of each partition once, in order."""
    clients = []
    for round in range(8):
        stage.send("decisions", 40, partition=round % 2)
        clients.append(curl("/live/decisions?from=beginning"))
    stage.send("decisions", 40, partition=1)
    ends = {0: 0, 1: 0}
    probe = curl("/live/decisions").started().id.removeprefix("decisions=")
    for pair in probe.split(","):
        partition, offset = pair.split(":")
        ends[int(partition)] = int(offset)
    for client in clients:
        heard = list(places(client.take(sum(ends.values()))))
        for partition, end in ends.items():
            assert [offset for _, p, offset in heard if p == partition] == list(range(end))


def test_a_pattern_follows_all_deliveries_that_match(stage: Stage, curl: Open) -> None:
    """One token for all of them, and it resumes all of them."""
    live = curl("/live/*s")
    live.started()
    stage.send("decisions", 1)
    first = live.take(1)[0]
    stage.send("prices", 1)
    stage.send("ticks", 1)
    heard = live.take(2)
    assert {event.name for event in heard} == {"prices", "ticks"}
    resumed = curl("/live/*s", "-H", f"Last-Event-ID: {first.id}").take(2)
    assert {event.place for event in resumed} == {event.place for event in heard}


def test_a_key_filters(stage: Stage, curl: Open) -> None:
    """Live as in history; and the beat moves the token of who hears nothing."""
    live = curl("/live/decisions?key=mine")
    live.started()
    stage.send("decisions", 2, key=b"other")
    stage.send("decisions", 1, key=b"mine")
    mine = live.take(1)[0]
    assert mine.json["key"] == "mine"
    assert curl("/live/decisions?key=mine&from=beginning").take(1)[0].place == mine.place
    until(lambda: live.beats >= 2)


def test_a_token_from_before_what_is_kept_tells_of_the_gap(stage: Stage, curl: Open) -> None:
    """How many are missing, and why; then the stream goes on with what there is."""
    stage.send("ticks", 5)
    stage.trim("ticks", 3)
    gap, next_one = curl("/live/ticks?after=ticks=0:1").take(2)
    assert gap.name == "penstock.gap"
    assert (gap.json["from"], gap.json["to"], gap.json["missed"]) == (1, 3, 2)
    assert gap.json["reason"] == "no longer kept"
    assert gap.id == "ticks=0:3"
    assert next_one.place == ("ticks", 0, 3)
    assert stage.metric("gaps_total") >= 1


def test_a_token_of_a_topic_that_was_made_again_tells_so(stage: Stage, curl: Open) -> None:
    """It names an offset behind the end: how much is missing nobody knows, and all that is there is new."""
    stage.send("prices", 1)
    gap, next_one = curl("/live/prices?after=prices=0:999999").take(2)
    assert gap.name == "penstock.gap"
    assert gap.json["missed"] is None
    assert "made again" in gap.json["reason"]
    assert next_one.place == ("prices", 0, 0)


def test_at_most_once_has_no_token(stage: Stage, curl: Open) -> None:
    """Fire and forget: no id, and asking to resume is refused in a sentence."""
    live = curl("/live/fleeting")
    assert live.started().json["resumes"] is False
    stage.send("fleeting", 1)
    heard = live.take(1)[0]
    assert heard.id == ""
    assert "resume" not in heard.json
    status, body, _ = stage.get("/live/fleeting?after=fleeting=0:0")
    assert (status, b"at-most-once" in body) == (400, True)


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/live/nothing", 404, b"nothing is delivered"),
        ("/live/decision", 404, b"did you mean decisions"),
        ("/live/x*", 404, b"nothing is delivered"),
        ("/live/decisions?from=later", 400, b"from is one of beginning"),
        ("/live/decisions?form=now&x=1", 400, b"unknown parameters 'form', 'x': known are from, after, until, key"),
        ("/live/decisions?after=prices=0:1", 400, b"not delivered here"),
        ("/live/decisions?after=" + "x" * 2000, 400, b"looks like"),
    ],
)
def test_what_cannot_be_served_is_a_sentence(stage: Stage, path: str, status: int, told: bytes) -> None:
    """Before the stream begins, as JSON with a status."""
    answer = stage.get(path)
    assert answer[0] == status
    assert told in answer[1]


def test_a_stream_can_only_be_read(stage: Stage, need_tool: Callable[[str], str]) -> None:
    """A HEAD or a POST is refused, and does not count as a client."""
    for method in ("POST", "HEAD", "DELETE"):
        flags = ["-I"] if method == "HEAD" else ["-X", method, "-D", "-"]
        done = subprocess.run(
            [need_tool("curl"), "-sS", *flags, f"{stage.url}/live/decisions"], capture_output=True, check=True
        )
        assert b" 405 " in done.stdout.splitlines()[0], method


def test_a_foreign_page_and_a_foreign_host_are_refused(stage: Stage) -> None:
    """A browser would send the Origin of the page that asks."""
    assert stage.status("/live/decisions", {"Origin": "http://evil.example"}) == 403
    assert stage.status("/live/decisions", {"Host": "evil.example"}) == 421
    assert stage.status("/live/decisions", {"Origin": stage.url}) == 200


def test_clients_that_leave_are_forgotten(stage: Stage, curl: Open) -> None:
    """Their number goes back, whether they listened or read history."""
    until(lambda: stage.metric("clients") == 0)
    some = [curl("/live/decisions"), curl("/live/decisions?from=beginning")]
    for each in some:
        each.started()
    until(lambda: stage.metric("clients") == 2)
    for each in some:
        each.close()
    until(lambda: stage.metric("clients") == 0)
    until(lambda: stage.metric("catch_ups") == 0)

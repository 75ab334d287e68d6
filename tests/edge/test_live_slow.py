"""Slow readers: a bounded backlog for each, the declared policy, counted; memory flat; the others unhurt."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.edge.live_stage import Curl, SlowReader, Stage, until

PAD = 4_000
MANY = 4_000  # 16 MB: more than the sockets of both sides hold
GROWTH_BYTES_MAX = 24 * 2**20
ROUNDS = 8  # 64 MB: far more than may stay


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    built = Stage(
        tmp_path_factory.mktemp("slow"), live_goodbye_ms=8_000, live_stall_ms=4_000, live_catch_ups_max=1,
        live_catch_up_wait_ms=100, live_clients_max=5,
    )  # fmt: skip
    yield built
    built.close()


@pytest.fixture
def slow(stage: Stage) -> Iterator[Callable[[str], SlowReader]]:
    opened: list[SlowReader] = []

    def follow(path: str) -> SlowReader:
        opened.append(SlowReader(stage.port, path))
        return opened[-1]

    yield follow
    for each in opened:
        each.close()
    until(lambda: stage.metric("clients") == 0)


Slow = Callable[[str], SlowReader]


def messages(stream: bytes) -> list[dict[str, Any]]:
    """The data of all whole events in a chunked response."""
    body = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", b"\r\n" + stream.partition(b"\r\n\r\n")[2])
    events = [json.loads(line) for line in re.findall(rb"^data: (.*)\n\n", body, re.MULTILINE)]
    return [event for event in events if event.get("event") != "penstock.start"]


def resident(stage: Stage) -> int:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{stage.edge_pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def read_until(reader: SlowReader, last: int) -> list[dict[str, Any]]:
    """Read on quickly until the value with the number `last` is there."""
    wanted = re.compile(rb'"value":\{"n":%d,.{%d,}\n\n' % (last, PAD), re.DOTALL)
    while not wanted.search(reader.seen[-2 * PAD - 1000 :]):
        more = reader.sock.recv(65536)
        assert more, "the stream ended"
        reader.seen += more
    return messages(reader.seen)


def test_disconnect_tells_where_to_go_on(stage: Stage, slow: Slow, need_tool: Callable[[str], str]) -> None:
    """The client gets the beginning without a hole, then the reason and a token; from there it misses nothing."""
    before = stage.metric("disconnected_slow_total")
    reader = slow("/live/small")
    first = stage.sent
    stage.send("decisions", MANY, pad=PAD)
    until(lambda: stage.metric("disconnected_slow_total") == before + 1)
    *heard, end = messages(reader.read_all())
    assert (end["event"], end["reason"]) == ("penstock.end", "slow")
    assert [each["value"]["n"] for each in heard] == list(range(first, first + len(heard)))
    assert len(heard) < MANY
    rest: list[int] = []
    token = end["resume"]
    # On a busy machine curl may be too slow, too: each end names where to go on.
    while len(rest) < MANY - len(heard):
        curl = Curl(need_tool("curl"), f"{stage.url}/live/small?after={token}")
        try:
            curl.started()
            while len(rest) < MANY - len(heard) and (event := curl.next()) is not None:
                if event.name == "penstock.end":
                    token = event.json["resume"]
                else:
                    rest.append(event.n)
        finally:
            curl.close()
    assert rest == list(range(first + len(heard), first + MANY))


def test_who_never_reads_is_cut_off(stage: Stage, slow: Slow) -> None:
    """After the time for the goodbye the connection is gone, with everything that waited for it."""
    reader = slow("/live/small")
    stage.send("decisions", MANY, pad=PAD)
    until(lambda: stage.metric("clients") == 0)
    assert not reader.read_all().endswith(b"0\r\n\r\n")


def test_a_byte_a_second_costs_no_memory_and_hurts_nobody(
    stage: Stage, slow: Slow, need_tool: Callable[[str], str]
) -> None:
    """drop_oldest: the client is told how many it missed, and what it got and what was dropped is everything."""
    reader = slow("/live/ticks")
    dropped = stage.metric("dropped_total")
    other = Curl(need_tool("curl"), f"{stage.url}/live/decisions")
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(1.0):
            reader.seen += reader.sock.recv(1)

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        other.started()
        first = stage.sent
        for number in range(ROUNDS):
            if number == ROUNDS // 2:
                before = resident(stage)  # with every buffer on the way as full as it gets
            stage.send("ticks", MANY // 2, pad=PAD)
        stage.send("decisions", 1)
        sent = ROUNDS * MANY // 2
        assert other.take(1)[0].n == first + sent
        assert resident(stage) - before < GROWTH_BYTES_MAX
    finally:
        stop.set()
        dripping.join()
        other.close()
    found = read_until(reader, first + sent - 1)
    numbers = [each["value"]["n"] for each in found if "value" in each]
    told = [each["count"] for each in found if each.get("event") == "penstock.dropped"]
    assert told
    assert len(numbers) + sum(told) == sent
    assert numbers == sorted(numbers)
    assert stage.metric("dropped_total") - dropped == sum(told)


def test_conflate_gives_the_latest_of_each_key(stage: Stage, slow: Slow) -> None:
    """What is skipped is only what a later message of the same key stands for: nothing is called dropped."""
    reader = slow("/live/prices")
    first = stage.sent
    for _ in range(4):
        stage.send("prices", MANY // 4, pad=PAD, key=b"a")
        stage.send("prices", MANY // 4, pad=PAD, key=b"b")
    last_a = first + 2 * MANY - MANY // 4 - 1
    found = read_until(reader, first + 2 * MANY - 1)
    assert all("event" not in each for each in found)
    numbers = [each["value"]["n"] for each in found]
    assert numbers == sorted(numbers)
    assert len(numbers) < 2 * MANY
    latest = {each["key"]: each["value"]["n"] for each in found}
    assert latest == {"a": last_a, "b": first + 2 * MANY - 1}
    reader.close()
    until(lambda: stage.metric("conflated_total") == 2 * MANY - len(numbers))


def test_history_is_read_only_as_fast_as_the_client_takes_it(stage: Stage, slow: Slow) -> None:
    """A client that stalls in history is closed to make room; until then others are asked to come back."""
    stage.send("decisions", MANY, pad=PAD)
    before, refused = resident(stage), stage.metric("refused_total")
    slow("/live/decisions?from=beginning")
    status, body, headers = stage.get("/live/decisions?from=beginning")
    assert (status, headers["retry-after"]) == (503, "1")
    assert b"read history" in body
    assert stage.metric("refused_total") == refused + 1
    until(lambda: stage.metric("catch_ups") == 0)
    assert resident(stage) - before < GROWTH_BYTES_MAX


def test_there_is_a_limit_to_live_clients(stage: Stage, slow: Slow) -> None:
    """Who comes beyond it is told when to come back."""
    for _ in range(5):
        slow("/live/decisions")
    status, body, headers = stage.get("/live/decisions")
    assert (status, headers["retry-after"]) == (503, "1")
    assert b"5 live clients" in body

"""What the newest results tell of the query that wrote them."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.analyze.result_latency import Newest, NewestResults, take
from penstock.events.query_status import Spread
from penstock.kafka.target import KafkaTarget

NOW_MS = 5_000  # of a steady clock


def result(source: str, accepted_ms: int = 1_000, written_ms: int = 1_004) -> tuple[dict[str, bytes], int]:
    return {"penstock-source": source.encode(), "penstock-time": b"%d" % accepted_ms}, written_ms


def test_the_furthest_event_of_each_partition_and_the_time_they_took() -> None:
    newest = take(Newest(), [result("in/0/7", 1_000, 1_002), result("in/0/5"), result("a/b/1/0")], NOW_MS)
    assert newest.since(0) == {("in", 0): 8, ("a/b", 1): 1}
    assert newest.latency_ms == Spread(2, 3.3, 4)


def test_a_query_that_began_anew_has_reached_only_what_it_wrote_since() -> None:
    """After a crash it does again what it did since its last commit."""
    before = take(Newest(), [result("in/0/90", written_ms=2_000), result("in/1/40", written_ms=2_000)], NOW_MS)
    assert before.since(2_001) == {}
    again = take(before, [result("in/0/60", written_ms=2_002)], NOW_MS)
    assert again.since(2_001) == {("in", 0): 61}


def test_a_look_that_sees_the_last_words_of_a_killed_run_and_the_first_of_the_next() -> None:
    both = take(Newest(), [result("in/0/90", written_ms=2_000), result("in/0/60", written_ms=2_002)], NOW_MS)
    assert both.since(2_001) == {("in", 0): 61}
    assert take(both, [result("in/0/70", written_ms=2_003)], NOW_MS).since(2_001) == {("in", 0): 71}


def test_a_partition_of_results_that_comes_later_takes_nothing_back() -> None:
    """Results of one partition may stand in several, and one of them is read last."""
    newest = take(take(Newest(), [result("in/0/90")], NOW_MS), [result("in/0/60", written_ms=2_000)], NOW_MS)
    assert newest.since(0) == {("in", 0): 91}


def test_what_is_kept_is_bounded() -> None:
    """The highest, and the newest."""
    falling = [result(f"in/0/{1_000 - number}", written_ms=number) for number in range(100)]
    newest = take(Newest(), falling, NOW_MS)
    assert newest.since(0) == {("in", 0): 1_001}
    assert newest.since(99) == {("in", 0): 902}
    assert len(newest.reached["in", 0]) <= 8


def test_headers_that_nobody_of_us_wrote_are_left_out() -> None:
    """Anybody may write to a topic of results."""
    sources = (b"\xff/1", b"in/x/1", b"in/0/" + b"9" * 5_000, b"in/-1/1")
    strange: list[dict[str, bytes]] = [{}, {"penstock-time": b"soon"}, *({"penstock-source": one} for one in sources)]
    assert take(Newest({"min": 1.0}), [(headers, 5) for headers in strange], NOW_MS) == Newest({"min": 1.0})


class Message(NamedTuple):
    """A result at an offset of partition 0 of `out`."""

    at: int

    def topic(self) -> str:
        return "out"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self.at

    def error(self) -> None:
        return None

    def headers(self) -> list[tuple[str, bytes]]:
        return list(result(f"in/0/{self.at}")[0].items())

    def timestamp(self) -> tuple[int, int]:
        return 1, 1_004


class SlowQueue:
    """A consumer to which nothing comes in time, until it does."""

    def __init__(self) -> None:
        self.is_slow = True
        self._at = 0

    def assign(self, places: list[Any]) -> None:
        self._at = places[0].offset

    def unassign(self) -> None:
        pass

    def consume(self, count: int, _: float) -> list[Message]:
        return [] if self.is_slow else [Message(self._at + number) for number in range(count)]


def test_what_does_not_come_in_time_is_read_with_the_next_look() -> None:
    """Else the last event before a pause would lag until the next commit."""
    newest, queue = NewestResults(KafkaTarget.parse("127.0.0.1:1"), ["out"]), SlowQueue()
    newest._consumer = queue
    newest.sample({("out", 0): 5}, NOW_MS)  # what was there before nobody waits for
    newest.sample({("out", 0): 7}, NOW_MS)
    assert newest.told == {}
    queue.is_slow = False
    newest.sample({("out", 0): 7}, NOW_MS)
    assert newest.told["out"].since(0) == {("in", 0): 7}

"""What the newest results tell of the query that wrote them."""

from __future__ import annotations

from penstock.analyze.newest import Newest, take


def result(source: str, accepted_ms: int = 1_000, written_ms: int = 1_004) -> tuple[dict[str, bytes], int]:
    return {"penstock-source": source.encode(), "penstock-time": b"%d" % accepted_ms}, written_ms


def test_the_furthest_event_of_each_partition_and_the_time_they_took() -> None:
    newest = take(Newest(), [result("in/0/7", 1_000, 1_002), result("in/0/5"), result("a/b/1/0")])
    assert newest.since(0) == {("in", 0): 8, ("a/b", 1): 1}
    assert newest.latency_ms == {"min": 2, "avg": 3.3, "max": 4}


def test_a_query_that_began_anew_has_reached_only_what_it_wrote_since() -> None:
    """After a crash it does again what it did since its last commit."""
    before = take(Newest(), [result("in/0/90", written_ms=2_000), result("in/1/40", written_ms=2_000)])
    assert before.since(2_001) == {}
    again = take(before, [result("in/0/60", written_ms=2_002)])
    assert again.since(2_001) == {("in", 0): 61}


def test_records_of_strangers_tell_nothing() -> None:
    """Anybody may write to a topic of results."""
    strange = [{}, {"penstock-source": b"\xff/1"}, {"penstock-source": b"in/x/1"}, {"penstock-time": b"soon"}]
    assert take(Newest({"min": 1.0}), [(headers, 5) for headers in strange]) == Newest({"min": 1.0})

"""The latest records in memory: all that a client missed, or the plain answer that it is not here."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.client.record import Record
from penstock.connectors.live.envelope import Body
from penstock.connectors.live.recent import Recent
from penstock.connectors.live.stream import TopicState

COUNT_MAX, BYTES_MAX = 6, 40
FIRST = {0: 100, 1: 5}  # where following began

STREAM = st.lists(st.tuples(st.sampled_from([0, 1]), st.integers(0, 15), st.integers(1, 3)), max_size=20)


def bodies(steps: list[tuple[int, int, int]], starts: dict[int, int]) -> list[Body]:
    """Records of these partitions, sizes and distances to the one before; offsets may have gaps."""
    offsets = dict(starts)
    found = []
    for partition, size, distance in steps:
        offset = offsets[partition] + distance - 1
        offsets[partition] = offset + 1
        found.append(Body(Record("t", partition, offset, 0, None, b"x" * size, [])))
    return found


@given(STREAM, STREAM, st.dictionaries(st.sampled_from([0, 1]), st.integers(0, 160), min_size=2))
def test_the_answer_is_everything_or_none(
    older: list[tuple[int, int, int]], newer: list[tuple[int, int, int]], asked: dict[int, int]
) -> None:
    """With records found from before the beginning, and with what came; never a part with a hole."""
    before = bodies(older, {0: 0, 1: 0})
    before = [body for body in before if body.record.offset < FIRST[body.record.partition]]
    after = bodies(newer, FIRST)
    recent = Recent(FIRST, COUNT_MAX, BYTES_MAX)
    for body in after[: len(after) // 2]:
        recent.add(body)
    recent.add_before(before)
    for body in after[len(after) // 2 :]:
        recent.add(body)
    assert len(recent) <= COUNT_MAX
    found = recent.since(asked)
    if found is None:
        assert any(asked[partition] < start for partition, start in recent.starts.items())
    else:
        everything = [*before, *after]
        assert found == [body for body in everything if body.record.offset >= asked[body.record.partition]]


def test_what_fits_is_here() -> None:
    """A client that missed little gets it from memory."""
    recent = Recent({0: 10}, COUNT_MAX, BYTES_MAX)
    new = bodies([(0, 1, 1)] * 3, {0: 10})
    for body in new:
        recent.add(body)
    recent.add_before(bodies([(0, 1, 1)] * 10, {0: 0}))
    found = recent.since({0: 7})
    assert found is not None
    assert [body.record.offset for body in found] == [7, 8, 9, 10, 11, 12]
    assert recent.since({0: 6}) is None
    assert recent.since({0: 13}) == []


def test_nothing_is_put_before_what_is_gone() -> None:
    """A large record that had to go again would be missing between an older one and the rest."""
    recent = Recent({0: 10}, COUNT_MAX, BYTES_MAX)
    for body in bodies([(0, 30, 1), (0, 20, 1)], {0: 10}):
        recent.add(body)
    recent.add_before(bodies([(0, 1, 1)], {0: 9}))
    assert recent.since({0: 9}) is None
    assert recent.since({0: 10}) is None
    assert len(recent.since({0: 11}) or []) == 1


def test_a_partition_that_came_later_is_here_from_its_first_record() -> None:
    recent = Recent({0: 10}, COUNT_MAX, BYTES_MAX)
    recent.add(Body(Record("t", 3, 0, 0, None, b"", [])))
    found = recent.since({0: 10})
    assert found is not None
    assert [body.record.partition for body in found] == [3]


def test_a_topic_made_again_is_another_topic() -> None:
    """Offsets that go back: what was remembered is of no use, and a token from before is not answered from memory."""
    topic = TopicState("t", True, Recent({0: 10, 1: 5}, COUNT_MAX, BYTES_MAX))
    for body in bodies([(0, 1, 1)] * 3, {0: 10}):
        topic.advance(body)
    assert len(topic.since({("t", 0): 11, ("t", 1): 5}) or []) == 2
    (first,) = bodies([(0, 1, 1)], {0: 0})
    topic.advance(first)
    assert topic.next == {0: 1, 1: 5}
    assert topic.since({("t", 0): 11, ("t", 1): 5}) is None
    assert topic.since({("t", 0): 0, ("t", 1): 5}) == [first]

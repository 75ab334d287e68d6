"""A log that keeps its promises is never accused; one that breaks a promise always is, by its name."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.assure.checker import check
from penstock.assure.history import (
    Assign,
    End,
    Event,
    Outcome,
    Poll,
    Send,
    Settle,
    Trim,
    decode_history,
    encode_event,
)
from penstock.assure.verdict import Result, Violation

TOPIC = "orders"
History = list[Event]
Mutation = Callable[[History, Settle, Settle], History]


class ModelLog:
    """A log that keeps every promise, with clients that record what they see."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.history: History = []
        self.logs: list[dict[int, str]] = [{}, {}]
        self.ends = [0, 0]
        self.starts = [0, 0]
        self.readers: list[tuple[int, int, int]] = []
        self.open: list[tuple[int, Settle]] = []
        self.sent = 0

    def step(self) -> None:
        chance = self.chance
        partition = chance.randrange(2)
        deed = chance.choices(["send", "settle", "assign", "poll", "hole", "trim"], [8, 6, 1, 6, 1, 0.2])[0]
        if deed == "send":
            self.send(partition, chance.choice(["p1", "p2", None]), chance.choice([*Outcome, None]))
        elif deed == "settle" and self.open:
            self.history.append(self.open.pop(chance.randrange(len(self.open)))[1])
        elif deed == "assign":
            self.assign(partition, chance.randint(self.starts[partition], self.ends[partition]))
        elif deed == "poll" and self.readers:
            self.poll(chance.randrange(len(self.readers)), chance.randint(0, 4))
        elif deed == "hole":
            self.ends[partition] += 1
        elif deed == "trim":
            self.trim(partition)

    def send(self, partition: int, producer: str | None, outcome: Outcome | None) -> None:
        self.sent += 1
        value = f"v{self.sent}"
        self.history.append(Send("writer", TOPIC, partition, value, producer))
        written = outcome is Outcome.OK or (outcome is not Outcome.FAIL and self.chance.random() < 0.5)
        if written and producer is None and self.chance.random() < 0.3:
            self.append(partition, value)
        offset = self.append(partition, value) if written else None
        if outcome is not None:
            told = offset if outcome is Outcome.OK and self.chance.random() < 0.9 else None
            self.open.append((partition, Settle("writer", TOPIC, partition, value, outcome, told)))

    def append(self, partition: int, value: str) -> int:
        offset = self.ends[partition]
        self.logs[partition][offset] = value
        self.ends[partition] = offset + 1
        return offset

    def assign(self, partition: int, offset: int) -> int:
        self.readers.append((len(self.readers), partition, offset))
        self.history.append(Assign("reader", len(self.readers) - 1, TOPIC, partition, offset))
        return len(self.readers) - 1

    def poll(self, reader: int, count: int) -> None:
        number, partition, position = self.readers[reader]
        log = self.logs[partition]
        offsets = [o for o in range(position, self.ends[partition]) if o in log][:count]
        self.history.append(Poll("reader", number, TOPIC, partition, tuple((o, log[o]) for o in offsets)))
        if offsets:
            self.readers[reader] = (number, partition, offsets[-1] + 1)

    def trim(self, partition: int) -> None:
        start = self.chance.randint(self.starts[partition], self.ends[partition])
        self.starts[partition] = start
        self.history.append(Trim("admin", TOPIC, partition, start))
        for offset in range(start):
            self.logs[partition].pop(offset, None)

    def read_all(self) -> None:
        for partition in range(2):
            reader = self.assign(partition, 0)
            while self.readers[reader][2] < max(self.logs[partition], default=-1) + 1:
                self.poll(reader, 3)
            self.history.append(End("reader", reader, TOPIC, partition, self.ends[partition]))


def honest_history(chance: Random, steps: int) -> History:
    """A random run, then two writes that a mutation can always pick, two full reads and nothing after."""
    world = ModelLog(chance)
    for _ in range(steps):
        world.step()
    for _ in range(2):
        world.send(0, "p1", Outcome.OK)
    world.history += [settle for _, settle in world.open]
    # The two must be known by offset, or a changed acknowledgement would be no lie.
    for value in (f"v{world.sent - 1}", f"v{world.sent}"):
        offset = next(o for o, v in world.logs[0].items() if v == value)
        told = Settle("writer", TOPIC, 0, value, Outcome.OK, offset)
        world.history = [told if isinstance(e, Settle) and e.value == value else e for e in world.history]
    world.read_all()
    world.read_all()
    return world.history


def pick(history: History, chance: Random) -> tuple[Settle, Settle]:
    """Two acknowledged writes of one idempotent producer, with known offsets, in the order sent."""
    trimmed = max((e.offset for e in history if isinstance(e, Trim) and e.partition == 0), default=0)
    mine = {e.value for e in history if isinstance(e, Send) and e.producer == "p1"}
    acked = [
        e
        for e in history
        if isinstance(e, Settle)
        and e.partition == 0
        and e.offset is not None
        and e.offset >= trimmed
        and e.value in mine
    ]
    first, second = sorted(chance.sample(acked, 2), key=lambda e: e.offset or 0)
    return first, second


def rewrite(history: History, change: Callable[[Poll, int, str], list[tuple[int, str]]], last: bool = False) -> History:
    """Change the records of partition 0 in every poll, or only in those of the last read."""
    final = max(e.assignment for e in history if isinstance(e, End) and e.partition == 0)
    forged: History = []
    for event in history:
        if isinstance(event, Poll) and event.partition == 0 and (not last or event.assignment == final):
            records = tuple(new for offset, value in event.records for new in change(event, offset, value))
            event = Poll(event.process, event.assignment, TOPIC, 0, records)
        forged.append(event)
    return forged


def swap_values(history: History, one: str, two: str, last: bool = False) -> History:
    other = {one: two, two: one}
    return rewrite(history, lambda _, offset, value: [(offset, other.get(value, value))], last)


def drop_everywhere(history: History, one: Settle, two: Settle) -> History:
    return rewrite(history, lambda _, o, v: [] if v == one.value else [(o, v)])


def drop_at_the_end(history: History, one: Settle, two: Settle) -> History:
    return rewrite(history, lambda _, o, v: [] if v == one.value else [(o, v)], last=True)


def cut_the_tail(history: History, one: Settle, two: Settle) -> History:
    cut = one.offset or 0
    forged = rewrite(history, lambda _, o, v: [(o, v)] if o < cut else [], last=True)
    end = forged.index(max((e for e in forged if isinstance(e, End) and not e.partition), key=assignment_of))
    return [*forged[:end], End("reader", assignment_of(forged[end]), TOPIC, 0, cut), *forged[end + 1 :]]


def assignment_of(event: Event) -> int:
    assert isinstance(event, (End, Poll, Assign))
    return event.assignment


def unsettle_and_drop(history: History, one: Settle, two: Settle) -> History:
    return drop_at_the_end([event for event in history if event != one], one, two)


def write_twice(history: History, one: Settle, two: Settle) -> History:
    return rewrite(history, lambda _, o, v: [(o, one.value if v == two.value else v)])


def swap_in_one_read(history: History, one: Settle, two: Settle) -> History:
    return swap_values(history, one.value, two.value, last=True)


def swap_in_all_reads(history: History, one: Settle, two: Settle) -> History:
    return swap_values(history, one.value, two.value)


def swap_in_reads_and_answers(history: History, one: Settle, two: Settle) -> History:
    lies = {
        one.value: Settle("writer", TOPIC, 0, one.value, Outcome.OK, two.offset),
        two.value: Settle("writer", TOPIC, 0, two.value, Outcome.OK, one.offset),
    }
    forged = [lies.get(e.value, e) if isinstance(e, Settle) else e for e in history]
    return swap_values(forged, one.value, two.value)


def answer_another_offset(history: History, one: Settle, two: Settle) -> History:
    lie = Settle("writer", TOPIC, 0, one.value, Outcome.OK, (one.offset or 0) + 1000)
    return [lie if event == one else event for event in history]


def answer_the_same_offset(history: History, one: Settle, two: Settle) -> History:
    lie = Settle("writer", TOPIC, 0, one.value, Outcome.OK, two.offset)
    return [lie if event == one else event for event in history]


def answer_failure(history: History, one: Settle, two: Settle) -> History:
    lie = Settle("writer", TOPIC, 0, one.value, Outcome.FAIL)
    return [lie if event == one else event for event in history]


def invent_a_value(history: History, one: Settle, two: Settle) -> History:
    return rewrite(history, lambda _, o, v: [(o, "invented" if v == one.value else v)])


def poll_again(history: History, one: Settle, two: Settle) -> History:
    return rewrite(history, lambda _, o, v: [(o, v), (o, v)] if v == one.value else [(o, v)])


MUTATIONS: dict[Mutation, Violation] = {
    drop_everywhere: Violation.LOST,
    drop_at_the_end: Violation.LOST,
    cut_the_tail: Violation.LOST,
    unsettle_and_drop: Violation.VANISHED,
    write_twice: Violation.DUPLICATE,
    swap_in_one_read: Violation.INCONSISTENT_OFFSETS,
    answer_the_same_offset: Violation.INCONSISTENT_OFFSETS,
    swap_in_all_reads: Violation.ACKED_AT_OTHER_OFFSET,
    answer_another_offset: Violation.ACKED_AT_OTHER_OFFSET,
    swap_in_reads_and_answers: Violation.REORDERED,
    invent_a_value: Violation.PHANTOM,
    answer_failure: Violation.FAILED_WRITE_READ,
    poll_again: Violation.BACKWARD_POLL,
}

seeds = st.integers(0, 2**32 - 1)
lengths = st.integers(0, 80)


@settings(deadline=None)  # a busy machine is no broken promise
@given(seed=seeds, steps=lengths)
def test_a_log_that_keeps_its_promises_is_valid(seed: int, steps: int) -> None:
    history = honest_history(Random(seed), steps)
    verdict = check(history)
    assert verdict.result is Result.VALID, (verdict.findings, verdict.reasons)
    assert check(decode_history([encode_event(event) for event in history])) == verdict


@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutate: mutate.__name__)
@settings(deadline=None)  # a busy machine is no broken promise
@given(seed=seeds, steps=lengths)
def test_one_broken_promise_is_convicted_by_name(mutate: Mutation, seed: int, steps: int) -> None:
    chance = Random(seed)
    history = honest_history(chance, steps)
    verdict = check(mutate(history, *pick(history, chance)))
    assert verdict.result is Result.INVALID
    assert MUTATIONS[mutate] in verdict.violations, (verdict.findings, verdict.reasons)


@settings(deadline=None)  # a busy machine is no broken promise
@given(seed=seeds, steps=lengths)
def test_a_reader_led_past_a_record_is_convicted(seed: int, steps: int) -> None:
    """Also where the record was never acknowledged and the final read has it."""
    chance = Random(seed)
    history = honest_history(chance, steps)
    one, _ = pick(history, chance)
    first = min(e.assignment for e in history if isinstance(e, End) and e.partition == 0)
    forged = rewrite(
        [event for event in history if event != one],
        lambda poll, o, v: [] if v == one.value and poll.assignment == first else [(o, v)],
    )
    verdict = check(forged)
    assert verdict.result is Result.INVALID
    assert list(verdict.violations) == [Violation.SKIPPED_POLL]


@settings(deadline=None)  # a busy machine is no broken promise
@given(seed=seeds, steps=lengths)
def test_without_a_final_read_nothing_is_proved(seed: int, steps: int) -> None:
    history = honest_history(Random(seed), steps)
    verdict = check([event for event in history if not isinstance(event, End)])
    assert verdict.result is Result.UNKNOWN

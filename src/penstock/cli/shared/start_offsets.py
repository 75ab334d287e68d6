"""Where a command begins to read, and where the end was when it began."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from penstock.cli.shared.broker_link import ANSWER_TIMEOUT_S, no_topic, reason
from penstock.client.offsets import offset_range, offsets_at_time
from penstock.client.start_words import BEGINNING, END, START_WORDS, start_word
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from confluent_kafka import Consumer

Command = TypeVar("Command", bound=Callable[..., Any])


class Range(NamedTuple):
    """Offsets of one partition: where to start, and the end at that moment."""

    partition: int
    start: int
    end: int


def parse_from(text: str) -> str | int | datetime:
    """BEGINNING or END by their words, an offset (negative: from the end), or a moment; ValueError says more."""
    if word := start_word(text):
        return word
    if text.removeprefix("-").isascii() and text.removeprefix("-").isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is none of {', '.join(START_WORDS)}, no offset like 42 or -5, and no time like "
            "2026-11-16T12:00:00Z"
        ) from None
    return moment if moment.tzinfo else moment.astimezone()


def start_option(flag: str, *, default: str | None = None) -> Callable[[Command], Command]:
    """An option that says where to begin: the parameter `begin` of a command."""
    return click.option(
        flag,
        "begin",
        type=_parsed,
        required=default is None,
        default=default,
        show_default=True,
        metavar="WHERE",
        shell_complete=lambda _, __, begun: [word for word in START_WORDS if word.startswith(begun)],
        help="beginning (or earliest), end (or latest, now), an offset (-5: the last five), or a time (ISO 8601).",
    )


def _parsed(given: str) -> str | int | datetime:
    try:
        return parse_from(given)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from None


def ranges(
    consumer: Consumer, topic: str, partitions: list[int], begin: str | int | datetime, whole: str = "--from beginning"
) -> list[Range]:
    """The range of each partition; PenstockError when an offset lies outside, where `whole` is advised."""
    bounds = {partition: offset_range(consumer, topic, partition, ANSWER_TIMEOUT_S) for partition in partitions}
    if isinstance(begin, datetime):
        stamp = int(begin.astimezone(UTC).timestamp() * 1000)
        found = offsets_at_time(consumer, topic, partitions, stamp, ANSWER_TIMEOUT_S)
        starts = {p: high if (start := found[p]) is None else start for p, (_, high) in bounds.items()}
        return [Range(p, starts[p], max(high, starts[p])) for p, (_, high) in bounds.items()]
    return [Range(p, _start(topic, p, begin, (low, high), whole), high) for p, (low, high) in bounds.items()]


def _start(topic: str, partition: int, begin: str | int, bounds: tuple[int, int], whole: str) -> int:
    low, high = bounds
    if begin == BEGINNING:
        return low
    if begin == END:
        return high
    offset = int(begin)
    if offset < 0:
        return max(low, high + offset)
    if not low <= offset <= high:
        raise PenstockError(
            f"partition {partition} of {topic} holds offsets {low} to {high}, and {offset} is outside: "
            f"use {whole}, or --partition to name another"
        )
    return offset


def partitions_of(consumer: Consumer, topic: str, wanted: int | None) -> list[int]:
    """The partitions to read; PenstockError when there is no such topic or partition."""
    found = consumer.list_topics(topic, timeout=ANSWER_TIMEOUT_S).topics[topic]
    if found.error is not None:
        if found.error.name() == "UNKNOWN_TOPIC_OR_PART":
            raise no_topic(topic)
        raise PenstockError(f"{topic}: {reason(found.error)}")
    if wanted is None:
        return sorted(found.partitions)
    if wanted not in found.partitions:
        raise PenstockError(f"{topic} has no partition {wanted}, only 0 to {len(found.partitions) - 1}")
    return [wanted]

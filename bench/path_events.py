"""The events of the whole path: 140 B of JSON, the time of sending inside."""

from __future__ import annotations

EVENT_BYTES = 140
CARDS = 1_000
SCHEMA = "id STRING, card STRING, amount DOUBLE, country STRING, sent BIGINT, note STRING"
AMOUNT_MIN = 100.0  # one event in ten has less, and is filtered
PARTITIONS = 2

_COUNTRIES = (b"NL", b"DE", b"US", b"BR")


def card_of(number: int) -> bytes:
    """The key of an event."""
    return b"card-%04d" % (number * 7919 % CARDS)


def is_kept(number: int) -> bool:
    """Whether the filter lets an event through."""
    return _amount(number) >= AMOUNT_MIN


def event(number: int, sent_ns: int) -> bytes:
    """The event with this number, sent at this time."""
    head = b'{"id":"e-%010d","card":"%s","amount":%d.25,"country":"%s","sent":%d,"note":"' % (
        number,
        card_of(number),
        _amount(number),
        _COUNTRIES[number % len(_COUNTRIES)],
        sent_ns,
    )
    return head + b"x" * (EVENT_BYTES - len(head) - 2) + b'"}'


def _amount(number: int) -> int:
    return number * 37 % 1_000

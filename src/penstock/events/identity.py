"""What an edge adds to an event: id, producer, sequence, time, as headers. Pure: chance and time are arguments."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.events.headers import ID, PRODUCER, SEQUENCE, TIME, Headers

CHANCE_BYTES = 10  # for each id
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}


def new_ids(count: int, time_ms: int, chance: bytes) -> list[str]:
    """UUIDs of version 7 (RFC 9562) from a time and CHANCE_BYTES random bytes each."""
    moment = f"{time_ms:012x}"
    head = f"{moment[:8]}-{moment[8:]}-7"
    digits = chance.hex()
    return [
        f"{head}{digits[at : at + 3]}-{_VARIANT[digits[at + 3]]}{digits[at + 4 : at + 7]}-{digits[at + 7 : at + 19]}"
        for at in range(0, count * 2 * CHANCE_BYTES, 2 * CHANCE_BYTES)
    ]


class Stamps:
    """Numbers the events of each topic while an edge runs: one that is missing got an error answer, or is lost."""

    def __init__(self, producer: str) -> None:
        self.producer = producer
        self._producer_header = (PRODUCER, producer.encode())
        self._next: dict[str, int] = {}

    def headers(self, topic: str, ids: Sequence[str], time_ms: int) -> list[Headers]:
        """The headers of the next events of a topic."""
        producer, moment = self._producer_header, (TIME, b"%d" % time_ms)
        first = self._next.get(topic, 0)
        self._next[topic] = first + len(ids)
        return [
            [(ID, id.encode()), producer, (SEQUENCE, b"%d" % sequence), moment]
            for sequence, id in enumerate(ids, first)
        ]

"""How long events took to become results: measured on a few of the newest results, each second."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from penstock.event import TIME

_SAMPLE_MAX = 16  # of each partition: enough for a mean, little enough to cost nothing
_READ_S = 0.2

Ends = Mapping[tuple[str, int], int]


class LatencySampler:
    """Reads the newest results of topics; keeps the last numbers while nothing new comes."""

    def __init__(self, queue: str, topics: Sequence[str]) -> None:
        self.latency_ms: dict[str, dict[str, float]] = {}
        self._topics = topics
        self._seen: dict[tuple[str, int], int] = {}
        self._consumer: Any = Consumer(
            {
                "bootstrap.servers": queue,
                "group.id": "penstock-latency",
                "enable.auto.commit": False,
                "queued.max.messages.kbytes": 1024,
                "log_level": 0,
                "error_cb": lambda _: None,
            }
        )

    def sample(self, ends: Ends) -> None:
        """Look at what is new below `ends`."""
        new = {
            place: max(self._seen[place], end - _SAMPLE_MAX)
            for place, end in ends.items()
            if place[0] in self._topics and end > self._seen.setdefault(place, end)
        }
        self._seen |= {place: ends[place] for place in new}
        if not new:
            return
        took: dict[str, list[int]] = {}
        self._consumer.assign([TopicPartition(*place, start) for place, start in new.items()])
        left = sum(ends[place] - start for place, start in new.items())
        deadline = time.monotonic() + _READ_S
        while left > 0 and (wait := deadline - time.monotonic()) > 0:
            for message in self._consumer.consume(left, wait):
                left -= 1
                if message.error() is None and (ms := _took_ms(message)) is not None:
                    took.setdefault(message.topic(), []).append(ms)
        self._consumer.unassign()
        for topic, found in took.items():
            self.latency_ms[topic] = summary(found)

    def close(self) -> None:
        self._consumer.close()


def summary(took_ms: Sequence[int]) -> dict[str, float]:
    """Least, mean and most."""
    return {"min": min(took_ms), "avg": round(sum(took_ms) / len(took_ms), 1), "max": max(took_ms)}


def _took_ms(message: Any) -> int | None:
    """From when the event was accepted to when its result was written."""
    accepted: bytes = dict(message.headers() or []).get(TIME) or b""
    written_ms: int = message.timestamp()[1]
    return max(0, written_ms - int(accepted)) if accepted.isdigit() else None

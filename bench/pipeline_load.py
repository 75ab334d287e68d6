"""A process that produces events at a steady rate and reads the results of a query: see `main`."""

from __future__ import annotations

import argparse
import json
import re
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from bench.boundaries import Sample, commit_times, summary
from bench.path_events import PARTITIONS, card_of, event

_SENT = re.compile(rb'"sent":(\d+)')
_QUIET_S = 5.0  # after the last event: whatever is late by then is lost


class Load:
    """One producer thread and one reader; both use the clock of this process."""

    def __init__(self, queue: str, reads: str, writes: str) -> None:
        self._producer = Producer({"bootstrap.servers": queue, "linger.ms": 0, "acks": "all"})
        self._reads = reads
        self._consumer = Consumer(
            {
                "bootstrap.servers": queue,
                "group.id": "bench",
                "enable.auto.commit": False,
                "fetch.min.bytes": 1,
                "fetch.wait.max.ms": 500,
                "queued.min.messages": 1_000_000,
            }
        )
        ends = [TopicPartition(writes, n) for n in range(PARTITIONS)]
        for place in ends:
            place.offset = self._consumer.get_watermark_offsets(place, timeout=30)[1]
        self._consumer.assign(ends)
        self._failed: list[str] = []
        self.produced = 0

    def run(self, rate: int, seconds: float, first: int) -> list[Sample]:
        """Produce for so long, and read what comes of it."""
        sender = threading.Thread(target=self._send, args=(rate, seconds, first), daemon=True)
        sender.start()
        samples, quiet_since = [], time.monotonic()
        while sender.is_alive() or time.monotonic() - quiet_since < _QUIET_S:
            message = self._consumer.poll(0.1)
            now_ns = time.time_ns()
            if sender.is_alive():
                quiet_since = time.monotonic()
            if message is None:
                continue
            if message.error() is not None:
                raise KafkaException(message.error())
            if found := _SENT.search(message.value() or b""):
                samples.append(Sample(int(found[1]), now_ns - int(found[1])))
        if self._failed:
            raise RuntimeError(f"{len(self._failed)} events were not stored: {self._failed[0]}")
        return samples

    def _send(self, rate: int, seconds: float, first: int) -> None:
        begun, step_s = time.monotonic(), 1 / rate
        for number in range(int(rate * seconds)):
            wait_s = begun + number * step_s - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)
            name = first + number
            self._producer.produce(self._reads, event(name, time.time_ns()), card_of(name), on_delivery=self._delivered)
            self._producer.poll(0)
            self.produced += 1
        self._producer.flush(30)

    def _delivered(self, error: object, _: object) -> None:
        if error is not None:
            self._failed.append(str(error))


def main() -> None:
    """Print one JSON object: percentiles in ms, with what was sent and read."""
    parser = argparse.ArgumentParser()
    for name in ("queue", "reads", "writes"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--rate", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--first", type=int, default=0, help="number of the first event")
    parser.add_argument("--checkpoint", type=Path, help="of the query; without it all is warm-up")
    given = parser.parse_args()
    load = Load(given.queue, given.reads, given.writes)
    begun_ns = time.time_ns()
    samples = [s for s in load.run(given.rate, given.seconds, given.first) if s.sent_ns >= begun_ns]
    told: dict[str, float] = {"produced": load.produced, "read": len(samples)}
    if given.checkpoint:
        told |= summary(samples, commit_times(given.checkpoint))
    print(json.dumps(told))


if __name__ == "__main__":
    main()

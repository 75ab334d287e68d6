"""A load of real clients on one broker: idempotent producers, a forgetful one, consumers, and the verdict on them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without types

from penstock.assure.verdict import Verdict
from penstock.drills.clients import Place, RecordingConsumer, RecordingProducer, Worker, read_all
from penstock.drills.recorder import Recorder

TOPIC, MEMORY_TOPIC = "storm", "storm-memory"
PARTITIONS = 4
# Small segments, so that rolls and checkpoints happen under fire too.
SETTINGS = {"segment.bytes": str(1024 * 1024)}


class Load:
    """Clients that write and read until told to stop; the history of all of them is in one file."""

    def __init__(self, address: str, history: Path, seed: int, *, with_memory_topic: bool = True) -> None:
        self._address = address
        self._seed = seed
        self.recorder = Recorder(history)
        self.places = [Place(TOPIC, number) for number in range(PARTITIONS)]
        create_topic(address, TOPIC, PARTITIONS, SETTINGS)
        if with_memory_topic:
            create_topic(address, MEMORY_TOPIC, 1, {**SETTINGS, "penstock.durability": "memory"})
            self.places.append(Place(MEMORY_TOPIC, 0))
        self.producers: list[RecordingProducer] = []
        self.consumers: list[RecordingConsumer] = []
        self._writing: list[Worker] = []
        self._reading: list[Worker] = []

    def start(self, producers: int = 3, consumers: int = 2) -> None:
        """Idempotent producers and one that is not, each to all partitions; consumers of all partitions."""
        for number in range(producers + 1):
            idempotent = number < producers
            name = f"p{number}" if idempotent else "forgetful"
            codec = ("none", "lz4", "snappy", "gzip")[number % 4]
            producer = RecordingProducer(
                name, self._address, self.recorder, idempotent=idempotent, compression_type=codec
            )
            self.producers.append(producer)
            chance = random.Random(f"{self._seed}/{name}")
            self._writing.append(Worker(name, partial(self._burst, producer, chance)))
        for number in range(consumers):
            consumer = RecordingConsumer(f"c{number}", self._address, self.recorder, self.places)
            self.consumers.append(consumer)
            self._reading.append(Worker(consumer.name, partial(consumer.poll, 0.2)))

    def _burst(self, producer: RecordingProducer, chance: random.Random) -> None:
        place = chance.choice(self.places)
        for _ in range(chance.randrange(1, 40)):
            producer.send(place, chance.choice((0, 0, 100, 1000)))
        producer.wait(chance.uniform(0, 0.1))

    @property
    def acked(self) -> int:
        return sum(producer.acked for producer in self.producers)

    @property
    def troubles(self) -> list[str]:
        """What clients could not get over by themselves."""
        clients: list[RecordingProducer | RecordingConsumer] = [*self.producers, *self.consumers]
        return [f"{client.name}: {what}" for client in clients for what in client.troubles]

    def finish(self) -> Verdict:
        """Stop writing, settle everything, read all from the beginning, and judge."""
        for worker in self._writing:
            worker.stop()
        for worker in self._writing:
            worker.join()
        for producer in self.producers:
            producer.settle()
        self._stop_reading()
        read_all("final", self._address, self.recorder, self.places)
        verdict = self.recorder.verdict()
        self.recorder.close()
        return verdict

    def _stop_reading(self) -> None:
        for worker in self._reading:
            worker.stop()
        for worker in self._reading:
            worker.join()
        for consumer in self.consumers:
            consumer.close()
        self._reading.clear()


def create_topic(address: str, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
    """Create a topic and wait until it is there."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    wanted = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(settings or {}))
    admin.create_topics([wanted])[name].result(60)


def delete_topic(address: str, name: str) -> None:
    """Delete a topic and wait until it is gone."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    admin.delete_topics([name])[name].result(60)

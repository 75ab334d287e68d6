"""Asks for the positions of all groups again and again, and records what it was told."""

from __future__ import annotations

import threading
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from penstock.assure.history import Ask, Position
from penstock.drills.recording_clients import PATIENT, Place
from proof.storm.recording import StampedRecorder

NAME = "auditor"
EVERY_S = 0.5
ANSWER_S = 10.0


class Auditor:
    """`groups` says which partitions each group reads."""

    def __init__(self, address: str, recorder: StampedRecorder, groups: dict[str, list[Place]]) -> None:
        self._recorder = recorder
        self._groups = groups
        # An AdminClient of librdkafka 2.16.0 aborts its process when a coordinator goes away under this question.
        self._clients: dict[str, Any] = {group: _consumer(address, group) for group in groups}
        self._lock = threading.Lock()
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=NAME, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._is_stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._is_stopping.wait(EVERY_S):
            for group in self._groups:
                if not self._is_stopping.is_set():
                    self.ask(group)

    def ask(self, group: str) -> dict[Place, int | None]:
        """The positions of a group, as they were recorded; none if nobody answered."""
        # One question at a time: an answer belongs to the last one.
        with self._lock:
            return self._ask(group)

    def _ask(self, group: str) -> dict[Place, int | None]:
        asked = [TopicPartition(*place) for place in self._groups[group]]
        self._recorder.record(Ask(NAME, group))
        try:
            parts = self._clients[group].committed(asked, ANSWER_S)
        except KafkaException:
            return {}
        told = {
            Place(part.topic, part.partition): part.offset if part.offset >= 0 else None
            for part in parts
            if part.error is None
        }
        self._recorder.record(*(Position(NAME, group, *place, offset) for place, offset in told.items()))
        return told

    def behind(self, targets: dict[Place, int]) -> dict[tuple[str, Place], int]:
        """By how much groups have not reached these positions yet, where they have not."""
        late: dict[tuple[str, Place], int] = {}
        for group, places in self._groups.items():
            told = self.ask(group)
            for place in places:
                missing = targets[place] - (told.get(place) or 0)
                if missing > 0:
                    late[group, place] = missing
        return late


def _consumer(address: str, group: str) -> Consumer:
    """Asks for stable positions: Kafka answers the end of a transaction before its positions are there for others."""
    return Consumer(
        {
            "bootstrap.servers": address,
            "client.id": NAME,
            "group.id": group,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "error_cb": _ignore,
            **PATIENT,
        }
    )


def _ignore(_: KafkaError) -> None:
    """That the broker is away is what a storm is about."""

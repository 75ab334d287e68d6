"""kafka-python in the storm."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import kafka

from penstock.assure.history import Outcome
from penstock.drills.recording_clients import Place
from penstock.errors import PenstockError
from proof.storm.client_library import (
    BACKOFF_MS,
    DELIVERY_MS,
    HEARTBEAT_MS,
    SESSION_MS,
    TRANSACTION_MS,
    OnPlaces,
    OnSettle,
    Reading,
    Records,
    within,
)

ANSWER_S = 10.0
POLLED_MAX = 200
PATIENT = {"reconnect_backoff_ms": BACKOFF_MS, "reconnect_backoff_max_ms": 200, "retry_backoff_ms": BACKOFF_MS}


class KafkaPythonWriting:
    """A producer, as `Writing` says."""

    def __init__(self, address: str, name: str, on_settle: OnSettle, owner: str | None) -> None:
        self._on_settle = on_settle
        settings: dict[str, Any] = {"transactional_id": owner, "transaction_timeout_ms": TRANSACTION_MS}
        self._client: Any = kafka.KafkaProducer(
            bootstrap_servers=address,
            client_id=name,
            enable_idempotence=True,
            delivery_timeout_ms=DELIVERY_MS,
            linger_ms=2,
            compression_type="gzip",
            **PATIENT,
            **(settings if owner else {}),
        )
        self._open: list[Any] = []
        if owner is not None:
            with within(3 * ANSWER_S, "init_transactions"):
                self._client.init_transactions()

    def send(self, place: Place, value: str) -> None:
        future = self._client.send(place.topic, value.encode(), partition=place.partition)
        future.add_callback(partial(self._on_ack, place, value))
        future.add_errback(partial(self._on_failure, place, value))
        self._open.append(future)

    def turn(self, seconds: float) -> None:
        time.sleep(seconds)
        self._open = [future for future in self._open if not future.is_done]

    def flush(self, seconds: float) -> None:
        with within(seconds, "flush"):
            for future in self._open:
                future.get(seconds)
        self._open = []

    def begin(self) -> None:
        self._client.begin_transaction()

    def send_positions(self, positions: Mapping[Place, int], reader: Reading) -> None:
        where = {_part(place): kafka.OffsetAndMetadata(offset, "", -1) for place, offset in positions.items()}
        with within(ANSWER_S, "send_offsets_to_transaction"):
            self._client.send_offsets_to_transaction(where, reader.group)

    def commit(self) -> None:
        with within(ANSWER_S, "commit_transaction"):
            self._client.commit_transaction()

    def abort(self) -> None:
        with within(ANSWER_S, "abort_transaction"):
            self._client.abort_transaction()

    def _on_ack(self, place: Place, value: str, told: Any) -> None:
        self._on_settle(place, value, Outcome.OK, told.offset if told.offset >= 0 else None)

    def _on_failure(self, place: Place, value: str, _: BaseException) -> None:
        self._on_settle(place, value, Outcome.UNKNOWN, None)


class KafkaPythonReading:
    """A consumer, as `Reading` says."""

    def __init__(self, address: str, name: str, group: str, committed: bool) -> None:
        self.group = group
        self.client: Any = kafka.KafkaConsumer(
            bootstrap_servers=address,
            client_id=name,
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed" if committed else "read_uncommitted",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            fetch_max_wait_ms=100,
            max_poll_records=POLLED_MAX,
            partition_assignment_strategy=[kafka.coordinator.assignors.roundrobin.RoundRobinPartitionAssignor],
            **PATIENT,
        )

    def subscribe(self, topics: Sequence[str], on_given: OnPlaces, on_taken: OnPlaces) -> None:
        class Listener(kafka.ConsumerRebalanceListener):  # type: ignore[misc]  # ships no types
            def on_partitions_assigned(self, assigned: Any) -> None:
                on_given([Place(part.topic, part.partition) for part in sorted(assigned)])

            def on_partitions_revoked(self, revoked: Any) -> None:
                on_taken([Place(part.topic, part.partition) for part in sorted(revoked)])

        self.client.subscribe(list(topics), listener=Listener())

    def assign(self, positions: Mapping[Place, int]) -> None:
        self.client.assign([_part(place) for place in positions])
        for place, offset in positions.items():
            self.client.seek(_part(place), offset)

    def poll(self, seconds: float) -> dict[Place, Records]:
        found = self.client.poll(timeout_ms=int(seconds * 1000))
        return {
            Place(part.topic, part.partition): [(record.offset, record.value.decode()) for record in records]
            for part, records in found.items()
        }

    def commit(self, positions: Mapping[Place, int]) -> None:
        where = {_part(place): kafka.OffsetAndMetadata(offset, "", -1) for place, offset in positions.items()}
        with within(ANSWER_S, "commit"):
            self.client.commit(where, timeout_ms=int(ANSWER_S * 1000))

    def position_of_group(self, place: Place) -> int | None:
        with within(3 * ANSWER_S, "committed"):
            found: int | None = self.client.committed(_part(place))
        return found

    def close(self) -> None:
        with within(ANSWER_S, "close"):
            self.client.close()


def write(address: str, name: str, on_settle: OnSettle, owner: str | None = None) -> KafkaPythonWriting:
    return KafkaPythonWriting(address, name, on_settle, owner)


def read(address: str, name: str, group: str, *, committed: bool = False, newer: bool = False) -> KafkaPythonReading:
    if newer:
        raise PenstockError("kafka-python does not speak the newer protocol of groups")
    return KafkaPythonReading(address, name, group, committed)


def _part(place: Place) -> Any:
    return kafka.TopicPartition(*place)

"""What transactions cost: to commit them, to read only what is committed, and to remember who owns them."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.child import run_child
from bench.process import resident_bytes
from bench.scene import FSYNC, OURS, Scene
from bench.start import start_s
from bench.topics import create_topic
from bench.wire_client import WireClient
from penstock.errors import PenstockError
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.kafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

KAFKAS_JOURNAL = "__transaction_state"
_NOT_YET = (14, 15, 16, 51)  # its coordinator loads, is not there, is elsewhere, or is busy
_TOPIC, _SET, _UNSET = 2, 0, 1
_OF_A_TRANSACTION = 1


@dataclass(frozen=True)
class TransactionsTrial:
    """Transactions of 100 records by one confluent-kafka producer, over one partition or several."""

    side: str
    partitions: int
    durability: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`rate` in transactions/s."""
        pace = scene.pace
        with scene.topic(self.side, self.durability, self.partitions) as (address, topic):
            if self.side != OURS:
                _own(address, topic)  # which makes the journal
                _sync_journal(address, self.durability == FSYNC)
            seconds = (pace.transactions_s, pace.transactions_s / 3)
            return {
                "rate": float(run_child("bench.transaction_load", address, topic, self.partitions, *seconds)["rate"])
            }


@dataclass(frozen=True)
class CommittedTrial:
    """The same records, written in transactions, read by two confluent-kafka consumers in turn."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`part`: the rate of the one that reads what is committed, of the ordinary one's."""
        records = scene.pace.consume_bytes // 100
        with scene.topic(self.side, FSYNC) as (address, topic):
            run_child("bench.transaction_fill", address, topic, records)
            rates = {}
            for isolation in ("read_uncommitted", "read_committed") * 2:  # the first of each warms up
                rates[isolation] = float(run_child("bench.read_client", address, topic, records, isolation)["rate"])
        return {"part": rates["read_committed"] / rates["read_uncommitted"]}


@dataclass(frozen=True)
class OwnersTrial:
    """10,000 transactional ids that were initialised once; then the broker is stopped and started again."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`megabytes` with them, `start` to the first ack in s."""
        with scene.lone_broker(self.side) as node:
            create_topic(node.address, "bench-owners")
            with WireClient(node.address) as client:
                for number in range(scene.pace.transactional_ids):
                    _init(client, f"owner-{number}")
            bytes_used = resident_bytes(node.pid)
            node.stop()
            node.start()
            return {"megabytes": bytes_used / 1e6, "start": start_s(node, "bench-owners")}


def _own(address: str, name: str) -> None:
    with WireClient(address) as client:
        _init(client, name)


def _init(client: WireClient, name: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        answer = client.ask(ApiKey.INIT_PRODUCER_ID, 3, InitProducerIdRequest(name, 60_000), InitProducerIdResponse)
        if not answer.error_code:
            return
        if answer.error_code not in _NOT_YET or time.monotonic() > deadline:
            raise PenstockError(f"{name} got no producer id: error {answer.error_code}")
        # Kafka makes its journal when somebody asks where it is.
        client.ask(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest(name, _OF_A_TRANSACTION), FindCoordinatorResponse)
        time.sleep(0.05)


def _sync_journal(address: str, is_synced: bool) -> None:
    """Kafka syncs the journal of its coordinator only if that topic says so."""
    change = AlterableConfig("flush.messages", _SET if is_synced else _UNSET, "1" if is_synced else None)
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(_TOPIC, KAFKAS_JOURNAL, [change])])
    with WireClient(address) as client:
        answer = client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request, IncrementalAlterConfigsResponse)
    if code := answer.responses[0].error_code:
        raise PenstockError(f"the journal of transactions was not configured: error {code}")

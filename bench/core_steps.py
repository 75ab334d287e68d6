"""Produce requests stepped through a node, without sockets."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Mapping
from uuid import UUID

from bench.instant_disk import InstantDisk
from bench.requests import CONNECTIONS, RECORD_BYTES
from bench.topics import PRODUCE_VERSION, create_request, produce_frame
from bench.wire_client import frame
from penstock.config.broker import BrokerConfig
from penstock.errors import PenstockError
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.message import encode
from penstock.kafka.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from penstock.queue.core.events import Connected, Drained, Effect, Event, Received, Reply, Sync, Synced
from penstock.queue.node import Node
from tests.stage.batches import batch

BATCH_BYTES = 16_384  # batch.size of Kafka's producer
_TOPIC = "bench-core"
_CREATE_VERSION = 5


def request_us(at_once: int, requests: int) -> float:
    """Time of one of so many requests, `at_once` in a step from as many clients; from its frame to its answer."""
    now_ms = int(time.time() * 1000)
    node = node_with_topic(now_ms)
    raw = produce_frame(_TOPIC, 0, bytes(RECORD_BYTES))[4:]
    events: list[Event] = [Received(number, memoryview(bytearray(raw))) for number in range(at_once)]
    steps = requests // at_once
    answers_of(node, events, steps // 10, now_ms)
    begun = time.perf_counter()
    answers = answers_of(node, events, steps, now_ms)
    seconds = time.perf_counter() - begun
    if answers != steps * at_once:
        raise PenstockError(f"the core answered {answers} of {steps * at_once} requests")
    return seconds / answers * 1e6


def node_with_topic(now_ms: int, settings: Mapping[str, str] | None = None) -> Node:
    """A node on a disk in memory, with one topic and as many connections as the trials of requests have."""
    address = ("127.0.0.1", 9092)
    node = Node(InstantDisk(), BrokerConfig(), address, _ids(), now_ms)
    node.step([Connected(number, "bench") for number in range(CONNECTIONS)], now_ms)
    request = frame(ApiKey.CREATE_TOPICS, _CREATE_VERSION, encode(create_request(_TOPIC, 1, settings), _CREATE_VERSION))
    answers_of(node, [Received(0, memoryview(bytearray(request[4:])))], 1, now_ms)
    return node


def _ids() -> Callable[[], UUID]:
    numbers = itertools.count(1)
    return lambda: UUID(int=next(numbers))


def produce_events(record_bytes: int, codec: int, now_ms: int) -> list[Event]:
    """A request with one batch, filled as Kafka's producer fills it; its records can be compressed to about half."""
    chance = random.Random(1)
    values = [chance.randbytes(record_bytes // 2).hex().encode() for _ in range(BATCH_BYTES // record_bytes)]
    records = batch(values, stamps=[now_ms] * len(values), codec=codec)
    data = [TopicProduceData(_TOPIC, partition_data=[PartitionProduceData(0, records)])]
    request = ProduceRequest(None, -1, 30_000, data)
    raw = frame(ApiKey.PRODUCE, PRODUCE_VERSION, encode(request, PRODUCE_VERSION))[4:]
    return [Received(0, memoryview(bytearray(raw)))]


def answers_of(node: Node, requests: list[Event], steps: int, now_ms: int) -> int:
    """Answers to `steps` rounds of the same requests; every sync ends in the step after the one that began it."""
    answers = 0
    step = node.step
    for _ in range(steps):
        events = requests
        while events:
            synced: list[Event] = []
            effects: list[Effect] = step(events, now_ms)
            for effect in effects:
                if type(effect) is Reply:
                    answers += len(effect.chunks)
                    if effect.is_large:
                        synced.append(Drained(effect.connection))
                elif type(effect) is Sync:
                    synced.append(Synced(effect.job, None))
            events = synced
    return answers

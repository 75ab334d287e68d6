"""Produce requests stepped through a node, without sockets."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from uuid import UUID

from bench.instant_disk import InstantDisk
from bench.requests import CONNECTIONS, RECORD_BYTES
from bench.topics import create_request, produce_frame
from bench.wire_client import frame
from penstock.broker.events import Connected, Drained, Effect, Event, Received, Reply, Sync, Synced
from penstock.broker.node import Node
from penstock.config import BrokerConfig
from penstock.errors import PenstockError
from penstock.wire.apis import ApiKey
from penstock.wire.message import encode

_TOPIC = "bench-core"
_CREATE_VERSION = 5


def request_us(at_once: int, requests: int) -> float:
    """Time of one of so many requests, `at_once` in a step from as many clients; from its frame to its answer."""
    now_ms = int(time.time() * 1000)
    node = _node_with_topic(now_ms)
    raw = produce_frame(_TOPIC, 0, bytes(RECORD_BYTES))[4:]
    events: list[Event] = [Received(number, memoryview(bytearray(raw))) for number in range(at_once)]
    steps = requests // at_once
    _answers(node, events, steps // 10, now_ms)
    begun = time.perf_counter()
    answers = _answers(node, events, steps, now_ms)
    seconds = time.perf_counter() - begun
    if answers != steps * at_once:
        raise PenstockError(f"the core answered {answers} of {steps * at_once} requests")
    return seconds / answers * 1e6


def _node_with_topic(now_ms: int) -> Node:
    address = ("127.0.0.1", 9092)
    node = Node(InstantDisk(), BrokerConfig(), address, _ids(), now_ms)
    node.step([Connected(number, "bench") for number in range(CONNECTIONS)], now_ms)
    request = frame(ApiKey.CREATE_TOPICS, _CREATE_VERSION, encode(create_request(_TOPIC), _CREATE_VERSION))
    _answers(node, [Received(0, memoryview(bytearray(request[4:])))], 1, now_ms)
    return node


def _ids() -> Callable[[], UUID]:
    numbers = itertools.count(1)
    return lambda: UUID(int=next(numbers))


def _answers(node: Node, requests: list[Event], steps: int, now_ms: int) -> int:
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

"""Stamps admitted events, hands them to the queue and keeps count of what became of them."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from penstock.client.producer import EventProducer
from penstock.client.topic_limits import TopicLimits
from penstock.config.edge import EdgeConfig
from penstock.connect import responses as answers
from penstock.connect.not_stored import Failure, failure_of
from penstock.connect.responses import Answer
from penstock.edge.admission import Admission
from penstock.edge.event_counters import Counters
from penstock.edge.event_sizes import HEADROOM, event_batch_size, size_failure, size_fault
from penstock.edge.memory_budget import MemoryBudget
from penstock.errors import ErrorCode
from penstock.events.event import Event
from penstock.events.identity import CHANCE_BYTES, Stamps, new_ids
from penstock.plan.plan import Plan
from penstock.plan.policies import Overload

CHANCE_AT_ONCE = 4096


class Storing:
    """Events handed to the queue together; `done` when the fate of each is known."""

    __slots__ = ("done", "failed", "left", "offset", "partition")

    def __init__(self, count: int, done: asyncio.Future[None]) -> None:
        self.left = count
        self.done = done
        self.failed: dict[int, tuple[int, str]] = {}  # number: code and text of the error
        self.partition = -1
        self.offset = -1

    def on_report(self, number: int, error: Any, message: Any) -> None:
        """What became of event `number`."""
        if error is not None:
            self.failed[number] = error.code(), error.str()
        elif not number:
            self.partition, self.offset = message.partition(), message.offset()
        self.left -= 1
        if not self.left and not self.done.done():
            self.done.set_result(None)


class Intake:
    """The doors of one edge: what each admits, what is under way, what was counted."""

    def __init__(self, plan: Plan, config: EdgeConfig, producer: EventProducer, limits: TopicLimits) -> None:
        self.plan = plan
        self.config = config
        self.room = MemoryBudget(config.inflight_bytes_max)
        self.counters = Counters()
        self.admissions = {
            door.path: Admission(plan.topics[door.topic], config.event_bytes_max) for door in plan.doors.values()
        }
        self.stamps = Stamps(fresh_ids(1)[0])
        self._producer = producer
        self._limits = limits
        self._loop = asyncio.get_running_loop()

    def drops(self, topic: str) -> bool:
        """Whether the topic's guarantee lets events go under overload."""
        return self.plan.topics[topic].policy.ingest.overload.value is Overload.DROP

    def oversized(self, topic: str, events: list[Event]) -> list[tuple[int, str]]:
        """The events that this topic of the queue does not take for their size: number and reason, in their order."""
        bytes_max = self._limits.bytes_max(topic)
        if bytes_max is None:
            return []
        plain_max = bytes_max - HEADROOM
        found = [
            (number, size_fault(size, topic, bytes_max))
            for number, event in enumerate(events)
            if (event.headers or len(event.value) + len(event.key or b"") > plain_max)
            and (size := event_batch_size(*event)) > bytes_max
        ]
        if found:
            self._limits.want()
        return found

    def store(self, topic: str, events: list[Event]) -> Storing:
        """Hand events to the queue, in their order."""
        storing = Storing(len(events), self._loop.create_future())
        stamped = self.stamps.headers(topic, [event.id for event in events], now_ms())
        self._producer.send(
            topic,
            [
                (event.value, event.key, headers + event.headers if event.headers else headers)
                for event, headers in zip(events, stamped, strict=True)
            ],
            storing.on_report,
        )
        return storing

    async def store_all(self, topic: str, events: list[Event], began: float) -> Answer:
        """Store events and tell their sender, once the fate of each is known."""
        storing = self.store(topic, events)
        await storing.done
        return await self.settle(topic, events, storing, began)

    async def settle(self, topic: str, events: list[Event], storing: Storing, began: float) -> Answer:
        """Count what became of stored events, and say it."""
        failed = await self.count(topic, events, storing, began)
        ids = [event.id for event in events]
        return answers.not_stored(ids, failed) if failed else answers.accepted(ids)

    async def count(self, topic: str, events: list[Event], storing: Storing, began: float) -> dict[int, Failure]:
        """Count what became of stored events; those that failed, by number."""
        counters = self.counters
        counters.store.add((time.perf_counter() - began) * 1000)
        failed = await self._failures(topic, events, storing) if storing.failed else {}
        stored = [event for number, event in enumerate(events) if number not in failed] if failed else events
        counters.accepted[topic] += len(stored)
        counters.accepted_bytes[topic] += sum([len(event.value) for event in stored])
        if failed:
            refused = len([failure for failure in failed.values() if failure.is_permanent])
            counters.unstored[topic] += len(failed) - refused
            if refused:
                counters.refused["queue"] += refused
        return failed

    async def _failures(self, topic: str, events: list[Event], storing: Storing) -> dict[int, Failure]:
        drops = self.drops(topic)
        failed = {number: failure_of(*error, drops) for number, error in sorted(storing.failed.items())}
        sized = [number for number, (code, _) in storing.failed.items() if code == ErrorCode.MESSAGE_TOO_LARGE]
        if not sized:
            return failed
        is_known = await self._limits.refresh()  # the limit is not what it was when the events were admitted
        bytes_max = self._limits.bytes_max(topic)
        for number in sized:
            reason, size = failed[number].reason, event_batch_size(*events[number])
            failed[number] = size_failure(reason, size, topic, bytes_max, is_known=is_known)
        return failed


class _Chance:
    """Random bytes, asked of the system many at a time: a call for each event costs more than the rest of its id."""

    def __init__(self) -> None:
        self._bytes = b""
        self._at = 0

    def take(self, count: int) -> bytes:
        if self._at + count > len(self._bytes):
            self._bytes, self._at = os.urandom(max(count, CHANCE_AT_ONCE)), 0
        self._at += count
        return self._bytes[self._at - count : self._at]


_chance = _Chance()


def fresh_ids(count: int) -> list[str]:
    """New ids for events that came without."""
    return new_ids(count, now_ms(), _chance.take(count * CHANCE_BYTES))


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000

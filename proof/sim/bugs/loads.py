"""Bugs of reading old records, planted on purpose."""

from __future__ import annotations

from copy import copy
from typing import Any

from penstock.queue.core.events import Part
from penstock.queue.core.host import Host
from penstock.queue.core.partition import Partition
from penstock.queue.core.waiting_fetch import Loads, WaitingFetch
from penstock.queue.handlers.fetch import Absent, Collected, Plan
from penstock.queue.log.reading import begin_of
from penstock.queue.node import Node


def loads_without_limit(sound: Any) -> Any:
    def take(self: Loads) -> Any:
        self._under_way_max = 10**9
        return sound(self)

    return take


def nothing_forgotten(_: Any) -> Any:
    return lambda self, waiting: None


def end_missed(_: Any) -> Any:
    """The disk has read, and nobody looks who waited."""
    return lambda host, job, now_ms: host.loads.end(job)


def waits_begin_anew(sound: Any) -> Any:
    """The time that the disk took does not count."""

    def answer_or_wait(host: Host, waiting: WaitingFetch, plan: Plan, now_ms: int) -> None:
        waiting.deadline_ms = now_ms + waiting.call.max_wait_ms
        sound(host, waiting, plan, now_ms)

    return answer_or_wait


def as_before_the_load(sound: Any) -> Any:
    """What was there when the disk was asked is told when it has read."""
    before: dict[int, tuple[Any, Plan]] = {}

    def plan(host: Host, waiting: WaitingFetch, now_ms: int) -> Plan:
        call = waiting.call
        if id(call) in before:
            return before.pop(id(call))[1]
        found: Plan = sound(host, waiting, now_ms)
        if found.absent:
            topics = [
                (key, [share._replace(partition=_frozen(share.partition)) for share in s]) for key, s in found.topics
            ]
            before[id(call)] = (call, Plan(topics, []))
        return found

    return plan


def _frozen(partition: Any) -> Any:
    if isinstance(partition, Partition):
        partition = copy(partition)
        partition.log = copy(partition.log)
    return partition


def read_in_the_step(sound: Any) -> Any:
    return lambda waiting, log, fetch, room, absent: sound(waiting, log, fetch, room, [])


def all_is_loaded(sound: Any) -> Any:
    def share(waiting: WaitingFetch, log: Any, fetch: Any, room: int, absent: list[Absent]) -> int:
        size: int = sound(waiting, log, fetch, room, absent)
        if size and not absent:
            segment, position, _ = begin_of(log, fetch.offset, log.visible)
            absent.append(Absent(log, Part(segment.file, position, size)))
        return size

    return share


def segments_end_unseen(_: Any) -> Any:
    """A reader who came to the end of a segment is looked for there, and not in the next."""

    def begin_at(log: Any, offset: int, limit: Any) -> Any:
        known = log.boundaries.get(offset)
        segment = known.segment if known is not None else log.segment_for(offset)
        position = known.position if known is not None else segment.index.floor(offset)[0]
        return segment, position, segment.index.after(offset)

    return begin_at


def resumed_once(sound: Any) -> Any:
    """Who is held back by what was taken up last waits for the next step, if there is one."""

    def resume_some(self: Node, now_ms: int) -> bool:
        if sound(self, now_ms):
            self._settle(now_ms)
        return False

    return resume_some


def held_back_uncounted(_: Any) -> Any:
    return lambda self, slot, reply: None


def cut_unseen(_: Any) -> Any:
    """Who wants more at once than a reply may hold waits for it."""

    class Uncut(Collected):
        is_cut = property(lambda self: False, lambda self, value: None)

    return Uncut

"""Fetch: answer with what is durable, or wait until there is enough of it."""

from __future__ import annotations

from typing import NamedTuple

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import LEADER_EPOCH
from penstock.kafka.wire.fetch import (
    BY_TOPIC_ID,
    FetchCall,
    FetchedPartition,
    FetchPartition,
    decode_fetch,
    encode_fetch_response,
)
from penstock.kafka.wire.header import RequestHeader
from penstock.queue.core.connection import Slot
from penstock.queue.core.events import Part
from penstock.queue.core.host import Host
from penstock.queue.core.partition import Partition, Shown
from penstock.queue.core.waiting_fetch import WaitingFetch
from penstock.queue.log.log import Log
from penstock.queue.log.reading import DamagedError, aborted_between, begin_of, read_until

_UNKNOWN = -1
_SMALL_BYTES = 64 * 1024
LOADS_EACH = 3  # what of a partition is still not in memory then is read all the same: only that tells why


class Absent(NamedTuple):
    """What is not in memory of a log that a fetch reads."""

    log: Log
    part: Part


class Share(NamedTuple):
    """How much of a reply a partition gets."""

    fetch: FetchPartition
    partition: Partition | ErrorCode
    size: int


class Plan(NamedTuple):
    """What a fetch may read now, by topic, and what of it the disk is to be asked for first."""

    topics: list[tuple[bytes, list[Share]]]
    absent: list[Absent]


class Collected:
    """What a fetch has found so far."""

    __slots__ = ("absent", "has_error", "is_committed", "is_cut", "may_exceed", "room", "size", "topics")

    def __init__(self, room: int, is_committed: bool, may_exceed: bool) -> None:
        self.room = room
        self.is_committed = is_committed  # nothing of open transactions, and told which were aborted
        self.may_exceed = may_exceed  # the first batch is sent whatever its size, else a client would never get on
        self.size = 0
        self.absent: list[Absent] = []  # to be asked for first: then all is looked at again
        self.has_error = False
        self.is_cut = False  # there is more than fits: to wait would bring nothing
        self.topics: list[tuple[bytes, list[FetchedPartition]]] = []


def handle_fetch(host: Host, slot: Slot, header: RequestHeader, frame: memoryview, now_ms: int) -> None:
    """Answer at once if there is enough or something is wrong, else when there is, or in time."""
    call = decode_fetch(frame, header.size, header.api_version)
    if call.session_id != 0 and call.session_epoch > 0:
        code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        host.replies.answer(slot, encode_fetch_response(header.api_version, header.correlation_id, code, []))
        return
    _go_on(host, WaitingFetch(slot, header, call, now_ms + call.max_wait_ms, host.timers, host.loads), now_ms)


def _go_on(host: Host, waiting: WaitingFetch, now_ms: int) -> None:
    plan = _plan(host, waiting, now_ms)
    if plan.absent:
        _load(host, waiting, plan.absent)
    else:
        _answer_or_wait(host, waiting, plan, now_ms)


def _load(host: Host, waiting: WaitingFetch, absent: list[Absent]) -> None:
    for log in dict.fromkeys(each.log for each in absent):
        waiting.loads[log] = waiting.loads.get(log, 0) + 1
    waiting.slot.connection.fetches[waiting] = None
    host.loads.want(waiting, [each.part for each in absent])


def on_loaded(host: Host, job: int, now_ms: int) -> None:
    """What a fetch reads has come from the disk: go on with it, as everything is by now."""
    waiting = host.loads.end(job)
    if not waiting.is_done and not waiting.slot.connection.is_closed:
        _go_on(host, waiting, now_ms)


def _answer_or_wait(host: Host, waiting: WaitingFetch, plan: Plan, now_ms: int) -> None:
    call = waiting.call
    found = _collect(host, waiting, plan)
    if found.absent:
        _load(host, waiting, found.absent)
        return
    is_enough = found.size >= call.min_bytes or found.has_error or found.is_cut
    if is_enough or now_ms >= waiting.deadline_ms or not call.topics:
        waiting.leave()
        _answer(host, waiting.slot, waiting.header, found)
        return
    waiting.missing = call.min_bytes - found.size
    for _, shares in plan.topics:
        for share in shares:
            if isinstance(share.partition, Partition):
                share.partition.fetches[waiting] = None
                waiting.partitions.append(share.partition)
    waiting.slot.connection.fetches[waiting] = None
    host.timers.add(waiting.deadline_ms, waiting)


def on_visible(host: Host, partition: Partition, shown: Shown, now_ms: int) -> None:
    """More of a partition can be read: answer the fetches for which that is enough."""
    if not partition.fetches:
        return
    visible, stable = shown
    for waiting in partition.fetches:
        waiting.on_visible(visible, stable)
    for ready in host.timers.take_ready():
        finish(host, ready, now_ms)


def finish(host: Host, waiting: WaitingFetch, now_ms: int) -> None:
    """Enough has come for a waiting fetch, or its time has: answer it with what there is now."""
    if waiting.is_done:
        return
    waiting.leave()
    if not waiting.slot.connection.is_closed:
        # What was in memory when it began to wait may have left it.
        slot, header, call, deadline_ms = waiting.slot, waiting.header, waiting.call, waiting.deadline_ms
        _go_on(host, WaitingFetch(slot, header, call, deadline_ms, host.timers, host.loads), now_ms)


def _answer(host: Host, slot: Slot, header: RequestHeader, found: Collected) -> None:
    host.counters.fetched_bytes += found.size
    host.replies.answer(slot, encode_fetch_response(header.api_version, header.correlation_id, 0, found.topics))


def _room(host: Host, call: FetchCall) -> int:
    return 0 if host.room.is_full else min(call.bytes_max, host.config.fetch_bytes_max, host.config.fetch_bytes_step)


def _plan(host: Host, waiting: WaitingFetch, now_ms: int) -> Plan:
    call = waiting.call
    by_id = waiting.header.api_version >= BY_TOPIC_ID
    room = _room(host, call)
    plan = Plan([], [])
    for key, wanted in call.topics:
        topic = host.catalog.find(key, by_id)
        shares = []
        for fetch in wanted:
            partition: Partition | ErrorCode
            if topic is None:
                partition = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                partition = host.partition(topic, fetch.partition, now_ms)
            size = 0
            if room > 0 and isinstance(partition, Partition):
                size = _share(waiting, partition.log, fetch, room, plan.absent)
                room -= size
            shares.append(Share(fetch, partition, size))
        plan.topics.append((key, shares))
    return plan


def _share(waiting: WaitingFetch, log: Log, fetch: FetchPartition, room: int, absent: list[Absent]) -> int:
    """How much to read of a log; what is not in memory is added to `absent`: others must not wait for it."""
    limit = log.stable if waiting.call.is_committed else log.visible
    if not log.start_offset <= fetch.offset < limit.offset:
        return 0
    segment, position, sure = begin_of(log, fetch.offset, limit)
    left = limit.end_in(segment) - position
    size = max(min(fetch.bytes_max, room, left), 1)
    # The first batch is read whatever its size.
    length = min(max(size, sure - position), left)
    # The end of a log was written a moment ago, and is in memory.
    is_askable = length > _SMALL_BYTES and waiting.loads.get(log, 0) < LOADS_EACH
    if is_askable and not segment.file.is_at_hand(position, length):
        absent.append(Absent(log, Part(segment.file, position, length)))
    return size


def _collect(host: Host, waiting: WaitingFetch, plan: Plan) -> Collected:
    call = waiting.call
    found = Collected(_room(host, call), call.is_committed, may_exceed=not host.room.is_full)
    for key, shares in plan.topics:
        fetched = []
        for share in shares:
            if isinstance(share.partition, ErrorCode):
                fetched.append(_error(found, share.fetch, share.partition))
            else:
                fetched.append(_read(host, waiting, share.partition, share, found))
        found.topics.append((key, fetched))
    return found


def _error(found: Collected, fetch: FetchPartition, code: ErrorCode) -> FetchedPartition:
    found.has_error = True
    return FetchedPartition(fetch.partition, code, _UNKNOWN, _UNKNOWN, _UNKNOWN, None, b"")


def _read(host: Host, waiting: WaitingFetch, partition: Partition, share: Share, found: Collected) -> FetchedPartition:
    fetch = share.fetch
    log = partition.log
    if fetch.leader_epoch > LEADER_EPOCH:
        return _error(found, fetch, ErrorCode.UNKNOWN_LEADER_EPOCH)
    if not log.start_offset <= fetch.offset <= log.next_offset:
        return _error(found, fetch, ErrorCode.OFFSET_OUT_OF_RANGE)
    if (code := waiting.refused.get(log)) is not None:
        return _error(found, fetch, code)
    records, following = memoryview(b""), fetch.offset
    limit = log.stable if found.is_committed else log.visible
    size = share.size
    if size == 0 and found.size == 0 and found.may_exceed and not found.absent:
        # Those before it were given all the room, and had nothing.
        size = _share(waiting, log, fetch, found.room, found.absent)
    if size > 0 and not found.absent:
        try:
            records, following = read_until(log, fetch.offset, size, limit)
        except DamagedError as damaged:
            host.notes.damage(partition, damaged.damage)
            waiting.refused[log] = ErrorCode.CORRUPT_MESSAGE
            return _error(found, fetch, ErrorCode.CORRUPT_MESSAGE)
        except OSError as error:
            host.notes.note("error", "read failed", partition=partition.name, reason=str(error))
            waiting.refused[log] = ErrorCode.KAFKA_STORAGE_ERROR
            return _error(found, fetch, ErrorCode.KAFKA_STORAGE_ERROR)
    if found.size and len(records) > found.room:
        records, following = memoryview(b""), fetch.offset
    found.size += len(records)
    found.room -= len(records)
    if following < limit.offset and found.may_exceed:
        found.is_cut = True
    aborted: list[tuple[int, int]] | None = None
    if found.is_committed:
        ranges = aborted_between(log, fetch.offset, following) if len(records) else ()
        aborted = [(one.producer_id, one.first_offset) for one in ranges]
    return FetchedPartition(
        fetch.partition, 0, log.visible.offset, log.stable.offset, log.start_offset, aborted, records
    )

"""Fetch: answer with what is durable, or wait until there is enough of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.broker.connection import Slot
from penstock.broker.events import Part
from penstock.broker.partition import Partition, Shown
from penstock.errors import ErrorCode
from penstock.log.reading import DamagedError, aborted_between, begin_of, read_until
from penstock.records.batch import LEADER_EPOCH
from penstock.wire.fetch import (
    BY_TOPIC_ID,
    FetchCall,
    FetchedPartition,
    FetchPartition,
    decode_fetch,
    encode_fetch_response,
)
from penstock.wire.header import RequestHeader

if TYPE_CHECKING:
    from penstock.broker.node import Node

_UNKNOWN = -1
_SMALL_BYTES = 64 * 1024


class Collected:
    """What a fetch has found so far."""

    __slots__ = ("has_error", "is_committed", "may_exceed", "room", "size", "topics")

    def __init__(self, room: int, is_committed: bool, may_exceed: bool) -> None:
        self.room = room
        self.is_committed = is_committed  # nothing of open transactions, and told which were aborted
        self.may_exceed = may_exceed  # the first batch is sent whatever its size, else a client would never get on
        self.size = 0
        self.has_error = False
        self.topics: list[tuple[bytes, list[FetchedPartition]]] = []


class WaitingFetch:
    """A fetch that has not enough yet; `missing` bytes would make it enough."""

    __slots__ = ("call", "header", "is_done", "missing", "partitions", "slot")

    def __init__(self, slot: Slot, header: RequestHeader, call: FetchCall, missing: int) -> None:
        self.slot = slot
        self.header = header
        self.call = call
        self.missing = missing
        self.is_done = False
        self.partitions: list[Partition] = []


def handle_fetch(node: Node, slot: Slot, header: RequestHeader, frame: memoryview, now_ms: int) -> None:
    """Answer at once if there is enough or something is wrong, else when there is, or in time."""
    call = decode_fetch(frame, header.size, header.api_version)
    if call.session_id != 0 and call.session_epoch > 0:
        code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        node.answer(slot, encode_fetch_response(header.api_version, header.correlation_id, code, []))
        return
    if absent := _absent(node, call, header.api_version, now_ms):
        waiting = WaitingFetch(slot, header, call, 0)
        slot.connection.fetches[waiting] = None
        node.loads.want(waiting, absent)
        return
    _answer_or_wait(node, slot, header, call, now_ms)


def on_loaded(node: Node, job: int, now_ms: int) -> None:
    """What a fetch reads has come from the disk: go on with it."""
    waiting = node.loads.end(job)
    if not waiting.is_done:
        abandon(waiting)
        _answer_or_wait(node, waiting.slot, waiting.header, waiting.call, now_ms)


def _answer_or_wait(node: Node, slot: Slot, header: RequestHeader, call: FetchCall, now_ms: int) -> None:
    found = _collect(node, call, header.api_version, now_ms)
    if found.size >= call.min_bytes or found.has_error or call.max_wait_ms <= 0 or not call.topics:
        _answer(node, slot, header, found)
        return
    waiting = WaitingFetch(slot, header, call, call.min_bytes - found.size)
    by_id = header.api_version >= BY_TOPIC_ID
    for key, wanted in call.topics:
        topic = node.catalog.find(key, by_id)
        for fetch in wanted:
            partition = node.partition(topic, fetch.partition, now_ms) if topic is not None else None
            if isinstance(partition, Partition):
                partition.fetches[waiting] = None
                waiting.partitions.append(partition)
    slot.connection.fetches[waiting] = None
    node.wake_at(now_ms + call.max_wait_ms, waiting)


def on_visible(node: Node, partition: Partition, shown: Shown, now_ms: int) -> None:
    """More of a partition can be read: answer the fetches for which that is enough."""
    visible, stable = shown
    for waiting in list(partition.fetches):
        waiting.missing -= stable if waiting.call.is_committed else visible
        if waiting.missing <= 0:
            finish(node, waiting, now_ms)


def finish(node: Node, waiting: WaitingFetch, now_ms: int) -> None:
    """Answer a waiting fetch with what there is now."""
    if waiting.is_done:
        return
    abandon(waiting)
    if not waiting.slot.connection.is_closed:
        _answer(node, waiting.slot, waiting.header, _collect(node, waiting.call, waiting.header.api_version, now_ms))


def abandon(waiting: WaitingFetch) -> None:
    waiting.is_done = True
    for partition in waiting.partitions:
        partition.fetches.pop(waiting, None)
    waiting.partitions.clear()
    waiting.slot.connection.fetches.pop(waiting, None)


def _answer(node: Node, slot: Slot, header: RequestHeader, found: Collected) -> None:
    node.counters.fetched_bytes += found.size
    node.answer(slot, encode_fetch_response(header.api_version, header.correlation_id, 0, found.topics))


def _absent(node: Node, call: FetchCall, version: int, now_ms: int) -> list[Part]:
    """What this fetch would have to wait for the disk for: others must not wait with it."""
    by_id = version >= BY_TOPIC_ID
    room = min(call.bytes_max, node.config.fetch_bytes_max, node.config.fetch_bytes_step)
    absent = []
    for key, wanted in call.topics:
        topic = node.catalog.find(key, by_id)
        for fetch in wanted:
            partition = node.partition(topic, fetch.partition, now_ms) if topic is not None else None
            if not isinstance(partition, Partition):
                continue
            log = partition.log
            limit = log.stable if call.is_committed else log.visible
            if not log.start_offset <= fetch.offset < limit.offset:
                continue
            segment, position = begin_of(log, fetch.offset)
            length = max(min(fetch.bytes_max, room, limit.end_in(segment) - position), 0)
            room -= length
            # The end of a log was written a moment ago, and is in memory.
            if length > _SMALL_BYTES and not segment.file.is_at_hand(position, length):
                absent.append(Part(segment.file, position, length))
    return absent


def _collect(node: Node, call: FetchCall, version: int, now_ms: int) -> Collected:
    by_id = version >= BY_TOPIC_ID
    is_full = node.room.is_full
    most = min(node.config.fetch_bytes_max, node.config.fetch_bytes_step)
    room = 0 if is_full else min(call.bytes_max, most)
    found = Collected(room, call.is_committed, may_exceed=not is_full)
    for key, wanted in call.topics:
        topic = node.catalog.find(key, by_id)
        fetched = []
        for fetch in wanted:
            if topic is None:
                code = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                fetched.append(_error(found, fetch, code))
                continue
            partition = node.partition(topic, fetch.partition, now_ms)
            if isinstance(partition, ErrorCode):
                fetched.append(_error(found, fetch, partition))
            else:
                fetched.append(_read(node, partition, fetch, found))
        found.topics.append((key, fetched))
    return found


def _error(found: Collected, fetch: FetchPartition, code: ErrorCode) -> FetchedPartition:
    found.has_error = True
    return FetchedPartition(fetch.partition, code, _UNKNOWN, _UNKNOWN, _UNKNOWN, None, b"")


def _read(node: Node, partition: Partition, fetch: FetchPartition, found: Collected) -> FetchedPartition:
    log = partition.log
    if fetch.leader_epoch > LEADER_EPOCH:
        return _error(found, fetch, ErrorCode.UNKNOWN_LEADER_EPOCH)
    if not log.start_offset <= fetch.offset <= log.next_offset:
        return _error(found, fetch, ErrorCode.OFFSET_OUT_OF_RANGE)
    records, following = memoryview(b""), fetch.offset
    if found.room > 0 or (found.size == 0 and found.may_exceed):
        try:
            limit = log.stable if found.is_committed else log.visible
            records, following = read_until(log, fetch.offset, max(min(fetch.bytes_max, found.room), 0), limit)
        except DamagedError as damaged:
            node.on_damage(partition, damaged.damage)
            return _error(found, fetch, ErrorCode.CORRUPT_MESSAGE)
        except OSError as error:
            node.note("error", "read failed", partition=partition.name, reason=str(error))
            return _error(found, fetch, ErrorCode.KAFKA_STORAGE_ERROR)
    if found.size and len(records) > found.room:
        records = memoryview(b"")
    found.size += len(records)
    found.room -= len(records)
    aborted: list[tuple[int, int]] | None = None
    if found.is_committed:
        ranges = aborted_between(log, fetch.offset, following) if len(records) else ()
        aborted = [(one.producer_id, one.first_offset) for one in ranges]
    return FetchedPartition(
        fetch.partition, 0, log.visible.offset, log.stable.offset, log.start_offset, aborted, records
    )

"""Produce: check the batch, give it its offset, acknowledge it when it is durable."""

from __future__ import annotations

from penstock.errors import ErrorCode, StorageError
from penstock.kafka.records.batch import (
    CODEC_MASK,
    HEADER_SIZE,
    BatchHeader,
    Refusal,
    assign_append_time,
    decode_header,
    refusal,
)
from penstock.kafka.records.compression import OpensTooLargeError
from penstock.kafka.wire.header import RequestHeader
from penstock.kafka.wire.produce import (
    BY_TOPIC_ID,
    PartitionAck,
    ProduceCall,
    decode_produce,
)
from penstock.kafka.wire.produce_shape import learn_shape
from penstock.queue.core.batch_openings import Found, Opening
from penstock.queue.core.catalog import Topic
from penstock.queue.core.connection import Connection, Slot
from penstock.queue.core.events import Opened
from penstock.queue.core.host import Host
from penstock.queue.core.partition import Partition
from penstock.queue.core.pending_produce import PendingProduce
from penstock.queue.core.produce_template import Shape, Shapes
from penstock.queue.log.producers import Fault, Sent
from penstock.queue.log.transaction_batches import append_transactional, end_stale, is_undecided
from penstock.queue.transactions.coordinator import Coordinator
from penstock.queue.transactions.produce_entry import Entry

_ACKS = (-1, 0, 1)


def handle_produce(
    host: Host, transactions: Coordinator, slot: Slot, header: RequestHeader, frame: memoryview, now_ms: int
) -> None:
    """Append every batch that may be appended; answer when all of them are durable or refused."""
    call = decode_produce(frame, header.size, header.api_version)
    _learn(host, slot.connection, header, frame, call, now_ms)
    found: Found = {}
    if large := _look_into(host, header, call, found):
        _wait(host, slot, header, memoryview(bytearray(frame)), found, large)  # the frame is gone after this step
    else:
        _store(host, transactions, slot, header, call, found, now_ms)


def on_opened(host: Host, transactions: Coordinator, event: Opened, now_ms: int) -> None:
    """The large batches of a request are checked. Everything else about it is decided now, by what there is now."""
    opening = host.openings.end(event.job, event.refusals)
    if opening is None:
        return
    slot, header, frame, found = opening.slot, opening.header, opening.frame, opening.found
    call = decode_produce(frame, header.size, header.api_version)
    if large := _look_into(host, header, call, found):  # for a topic that was created meanwhile, say
        _wait(host, slot, header, frame, found, large)
    else:
        _store(host, transactions, slot, header, call, found, now_ms)


def _wait(host: Host, slot: Slot, header: RequestHeader, frame: memoryview, found: Found, large: list[int]) -> None:
    """Let the request wait until threads have opened the batches with these numbers."""
    call = decode_produce(frame, header.size, header.api_version)
    every = [batch for _, batches in call.topics for _, batch in batches]
    asked = [batch for number in large if (batch := every[number]) is not None]
    host.openings.want(Opening(host.openings, slot, header, frame, found, large, asked))


def _look_into(host: Host, header: RequestHeader, call: ProduceCall, found: Found) -> list[int]:
    """Open the compressed batches that may be stored; the numbers of those too large for this step."""
    openings, large = host.openings, []
    by_id = header.api_version >= BY_TOPIC_ID
    number = -1
    for key, batches in call.topics:
        topic = host.catalog.find(key, by_id)
        for _, batch in batches:
            number += 1
            if topic is None or batch is None or number in found or not topic.config.checks_records:
                continue
            size = len(batch)
            if not HEADER_SIZE <= size <= topic.config.max_message_bytes:
                continue
            batch_header = decode_header(batch)
            if size <= openings.on_loop_max and not batch_header.attributes & CODEC_MASK:
                continue  # it is checked where it is stored
            if refusal(batch, batch_header) is None:
                try:
                    found[number] = _records_refusal(host, batch, batch_header)
                except OpensTooLargeError:
                    large.append(number)
    return large


def _store(
    host: Host,
    transactions: Coordinator,
    slot: Slot,
    header: RequestHeader,
    call: ProduceCall,
    found: Found,
    now_ms: int,
) -> None:
    """Append what may be appended; `found` tells what was found in compressed batches."""
    pending = PendingProduce(host.replies, host.counters, slot, header, call.acks)
    entry = None
    if call.transactional_id is not None:
        entry = Entry(transactions, call.transactional_id.decode("utf-8", "replace"), header.api_version)
    by_id = header.api_version >= BY_TOPIC_ID
    number = -1
    for key, batches in call.topics:
        topic = host.catalog.find(key, by_id)
        acks = []
        for index, batch in batches:
            number += 1
            ack = PartitionAck(index)
            acks.append(ack)
            if call.acks not in _ACKS:
                ack.refuse(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is -1, 0 or 1, not {call.acks}")
            elif topic is None:
                unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                ack.refuse(unknown, "this broker has no such topic")
            else:
                _append(host, pending, topic, ack, batch, found, number, entry, now_ms)
            if ack.error_code:
                host.counters.refused(ack.error_code)
        pending.topics.append((key, acks))
    if entry is not None:
        entry.close(pending, now_ms)
    pending.one_done()


def _learn(
    host: Host, connection: Connection, header: RequestHeader, frame: memoryview, call: ProduceCall, now_ms: int
) -> None:
    """Remember what this client's requests for a partition look like, so that the next one needs no decoding."""
    wire = learn_shape(frame, header.api_version, call)
    if wire is None:
        return
    key, ((index, _),) = call.topics[0]
    topic = host.catalog.find(key, header.api_version >= BY_TOPIC_ID)
    partition = host.partition(topic, index, now_ms) if topic is not None else None
    if topic is None or not isinstance(partition, Partition):
        return
    shapes, version = connection.shapes, host.catalog.version
    if shapes is None or shapes.catalog_version != version:
        connection.shapes = shapes = Shapes(version)
    shapes.add(Shape(wire, key, topic, partition, index))


def _append(
    host: Host,
    pending: PendingProduce,
    topic: Topic,
    ack: PartitionAck,
    batch: memoryview | None,
    found: Found,
    number: int,
    entry: Entry | None,
    now_ms: int,
) -> None:
    partition = host.partition(topic, ack.index, now_ms)
    if isinstance(partition, ErrorCode):
        return ack.refuse(partition, "this partition is not available")
    log = partition.log
    if log.stopped is not None:
        return ack.refuse(ErrorCode.KAFKA_STORAGE_ERROR, log.stopped)
    if batch is None or len(batch) < HEADER_SIZE:
        return ack.refuse(ErrorCode.CORRUPT_MESSAGE, "no record batch was sent")
    header = decode_header(batch)
    wrong = _batch_refusal(topic, batch, header, entry, now_ms)
    if wrong is None:
        if number in found:
            wrong = found[number]
        elif topic.config.checks_records:
            wrong = _records_refusal(host, batch, header)
    if wrong is None and header.is_transactional and entry is not None:
        wrong = entry.refuse(header, (topic.topic_id, ack.index))
        if wrong is None and is_undecided(log, header.producer_id):
            wrong = (
                ErrorCode.KAFKA_STORAGE_ERROR,
                "what ended the transaction before is damaged",
            )
    if wrong is not None:
        return ack.refuse(*wrong)
    if header.producer_id >= 0:
        known = log.producers.check(*header[9:13], header.is_transactional)
        if known is not None:
            _answer_known(host, pending, partition, ack, known)
            if entry is not None and header.is_transactional and not ack.error_code:
                entry.enter((topic.topic_id, ack.index), ack)
            return None
    if topic.config.log_append_time:
        assign_append_time(batch, now_ms)
        header = decode_header(batch)
        ack.append_time_ms = now_ms
    try:
        if header.is_transactional:
            end_stale(log, header, now_ms)
            ack.base_offset = append_transactional(log, batch, header, now_ms)
        else:
            ack.base_offset = log.append(batch, header.last_delta, header.max_timestamp, now_ms)
    except StorageError as error:
        log.producers.miss(header.producer_id, header.producer_epoch, header.base_sequence)
        partition.fail_staged()
        return ack.refuse(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    if header.is_transactional and entry is not None:
        entry.enter((topic.topic_id, ack.index), ack)
    elif header.producer_id >= 0:
        log.producers.admit(*header[9:13], ack.base_offset, now_ms)
    ack.start_offset = log.start_offset
    pending.wait_for(partition, ack)
    host.dirty[partition] = None
    return None


def _batch_refusal(
    topic: Topic, batch: memoryview, header: BatchHeader, entry: Entry | None, now_ms: int
) -> tuple[ErrorCode, str] | None:
    """Why this batch is not stored, whatever the partition holds."""
    limit = topic.config.max_message_bytes
    if header.is_transactional and entry is None:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch needs a transactional id"
    if len(batch) > limit:
        return ErrorCode.MESSAGE_TOO_LARGE, f"the batch has {len(batch)} bytes, {limit} are allowed"
    return refusal(batch, header) or _time_refusal(topic, header, now_ms)


def _records_refusal(host: Host, batch: memoryview, header: BatchHeader) -> Refusal | None:
    fault = host.openings.fault(batch, header.attributes & CODEC_MASK, header.record_count)
    return None if fault is None else Refusal(ErrorCode.INVALID_RECORD, fault)


def _time_refusal(topic: Topic, header: BatchHeader, now_ms: int) -> tuple[ErrorCode, str] | None:
    config = topic.config
    if config.log_append_time:
        return None
    if header.max_timestamp - now_ms > config.timestamp_after_max_ms:
        return ErrorCode.INVALID_TIMESTAMP, f"timestamp {header.max_timestamp} is too far in the future"
    if header.base_timestamp >= 0 and now_ms - header.base_timestamp > config.timestamp_before_max_ms:
        return ErrorCode.INVALID_TIMESTAMP, f"timestamp {header.base_timestamp} is too far in the past"
    return None


def _answer_known(
    host: Host, pending: PendingProduce, partition: Partition, ack: PartitionAck, known: Sent | Fault
) -> None:
    """A repeat is answered like the first time, and like it only once it is durable."""
    if known is Fault.FENCED:
        return ack.refuse(ErrorCode.INVALID_PRODUCER_EPOCH, known.value)
    if known is Fault.IN_TRANSACTION:
        return ack.refuse(ErrorCode.INVALID_TXN_STATE, known.value)
    if isinstance(known, Fault):
        return ack.refuse(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, known.value)
    ack.base_offset = known.base_offset
    ack.start_offset = partition.log.start_offset
    host.counters.repeats += 1
    if known.next_offset > partition.log.visible.offset:
        pending.wait_for(partition, ack)
        host.dirty[partition] = None
    return None

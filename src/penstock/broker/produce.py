"""Produce: check the batch, give it its offset, acknowledge it when it is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from penstock.broker.catalog import Topic
from penstock.broker.connection import Connection, Slot
from penstock.broker.partition import Partition
from penstock.broker.transactions.entry import Entry
from penstock.errors import ErrorCode, StorageError
from penstock.log.producers import Fault, Sent
from penstock.log.transactional import append_transactional, end_stale, is_undecided
from penstock.records.batch import (
    CODECS,
    CRC_FROM,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    BatchHeader,
    assign_append_time,
    decode_header,
    refusal,
    unpack_facts,
)
from penstock.wire.apis import ApiKey
from penstock.wire.header import RequestHeader
from penstock.wire.produce import (
    BY_TOPIC_ID,
    PartitionAck,
    ProduceCall,
    decode_produce,
    encode_produce_response,
)
from penstock.wire.shape import Opening, ProduceShape, learn_shape

if TYPE_CHECKING:
    from penstock.broker.node import Node

SHAPES_MAX: Final = 64  # partitions that one client writes to by turns without being decoded again; 0.5 KB each
_NONE = ErrorCode.NONE
_ACKS = (-1, 0, 1)
_DISK_REFUSED = "the disk did not take it"
_crc32c: Final = crc32c
_CODEC_COUNT: Final = len(CODECS)
_PRODUCE: Final = int(ApiKey.PRODUCE)


class PendingProduce:
    """An answer that waits for some of its partitions."""

    __slots__ = ("acks", "correlation_id", "node", "pending", "slot", "topics", "version")

    def __init__(self, node: Node, slot: Slot, header: RequestHeader, acks: int) -> None:
        self.node = node
        self.slot = slot
        self.version = header.api_version
        self.correlation_id = header.correlation_id
        self.acks = acks
        self.pending = 1  # the handler itself, until it has looked at every partition
        self.topics: list[tuple[bytes, list[PartitionAck]]] = []

    def one_done(self) -> None:
        self.pending -= 1
        if self.pending == 0:
            if self.acks == 0:
                self._end_silently()
            else:
                frame = encode_produce_response(self.version, self.correlation_id, self.topics)
                self.node.answer(self.slot, [frame])

    def _end_silently(self) -> None:
        refused = next((ack for _, acks in self.topics for ack in acks if ack.error_code), None)
        if refused is None:
            self.node.answer(self.slot, [])
        else:
            # As Kafka does: only the end of the connection makes such a client look for what is wrong.
            self.node.close(self.slot.connection, "refused", f"with acks=0: {refused.error_message}")

    def wait_for(self, partition: Partition, ack: PartitionAck) -> None:
        """Count this partition in, until its log says what became of the batch."""
        self.pending += 1
        partition.when_durable(_OneOfMany(self, ack))


class _OneOfMany(NamedTuple):
    """One batch of a request that waits to become durable."""

    request: PendingProduce
    ack: PartitionAck

    def done(self, code: ErrorCode) -> None:
        if code is not _NONE:
            refuse(self.ack, code, _DISK_REFUSED)
            self.request.node.counters.refused(code)
        self.request.one_done()


class Shape:
    """What a connection's produce requests for one partition look like, and where they go."""

    __slots__ = (
        "after_max_ms",
        "before_max_ms",
        "bytes_max",
        "is_stamped_here",
        "key",
        "number",
        "partition",
        "wire",
    )

    def __init__(self, wire: ProduceShape, key: bytes, topic: Topic, partition: Partition, number: int) -> None:
        config = topic.config
        self.wire = wire
        self.key = key
        self.partition = partition
        self.number = number
        self.bytes_max = config.max_message_bytes
        self.after_max_ms = config.timestamp_after_max_ms
        self.before_max_ms = config.timestamp_before_max_ms
        self.is_stamped_here = config.log_append_time


class Shapes:
    """The shapes that a connection has shown, by what stands before the batch; true while the catalog is the same."""

    __slots__ = ("catalog_version", "known", "opening")

    def __init__(self, opening: Opening, catalog_version: int) -> None:
        self.opening = opening
        self.catalog_version = catalog_version
        self.known: dict[bytes, Shape] = {}

    def has_room(self, wire: ProduceShape, catalog_version: int) -> bool:
        """Whether this one can be kept beside the others; else all begins anew."""
        opening = self.opening
        is_alike = opening.version == wire.version and opening.size == len(wire.middle)
        return is_alike and self.catalog_version == catalog_version and len(self.known) < SHAPES_MAX


class ShapedProduce(Slot):
    """A request of a known shape that waits for its batch to become durable."""

    __slots__ = ("base_offset", "correlation_id", "node", "shape")

    def __init__(
        self, node: Node, connection: Connection, request_bytes: int, shape: Shape, correlation_id: int
    ) -> None:
        self.node = node
        self.connection = connection
        self.held_bytes = request_bytes
        self.reply = None
        self.shape = shape
        self.correlation_id = correlation_id
        self.base_offset = -1

    def done(self, code: ErrorCode) -> None:
        shape = self.shape
        if code is _NONE:
            reply = shape.wire.encode_ack(self.correlation_id, self.base_offset, shape.partition.log.start_offset)
        else:
            ack = PartitionAck(shape.number)
            refuse(ack, code, _DISK_REFUSED)
            self.node.counters.refused(code)
            reply = encode_produce_response(shape.wire.version, self.correlation_id, [(shape.key, [ack])])
        self.node.answer(self, reply)


def produce_shaped(node: Node, connection: Connection, shapes: Shapes, frame: memoryview, now_ms: int) -> bool:
    """The fast way for a request like one before; False, and nothing done, if anything is unusual about it."""
    found = shapes.opening.split(frame)
    if found is None or shapes.catalog_version != node.catalog.version:
        return False
    correlation_id, middle, batch = found
    shape = shapes.known.get(middle)
    if shape is None:
        return False
    size = len(batch)
    partition = shape.partition
    log = partition.log
    if size < HEADER_SIZE or size > shape.bytes_max or log.stopped is not None or shape.is_stamped_here:
        return False
    # Named with its types: compiled, the numbers of a tuple of unknown length stay objects.
    facts: tuple[int, int, int, int, int, int, int, int, int, int, int] = unpack_facts(batch)
    length, magic, crc, attributes, last_delta, base_stamp, stamp, pid, epoch, sequence, count = facts
    if (
        length != size - LENGTH_OVERHEAD
        or magic != MAGIC
        or not 0 <= attributes < _CODEC_COUNT
        or count <= 0
        or last_delta != count - 1
        or stamp < base_stamp
        or stamp - now_ms > shape.after_max_ms
        or now_ms - base_stamp > shape.before_max_ms
        or _crc32c(batch[CRC_FROM:]) != crc
    ):
        return False
    producers = log.producers
    if pid >= 0 and (epoch < 0 or sequence < 0 or producers.check(pid, epoch, sequence, count) is not None):
        return False
    slot = ShapedProduce(node, connection, len(frame), shape, correlation_id)
    node.enter(slot)
    node.counters.requests[_PRODUCE] += 1
    try:
        slot.base_offset = base = log.append(batch, last_delta, stamp, now_ms)
    except StorageError:
        producers.miss(pid, epoch, sequence)
        partition.fail_staged()
        slot.done(ErrorCode.KAFKA_STORAGE_ERROR)
        return True
    if pid >= 0:
        producers.admit(pid, epoch, sequence, count, base, now_ms)
    partition.when_durable(slot)
    node.dirty[partition] = None
    return True


def refuse(ack: PartitionAck, code: ErrorCode, why: str) -> None:
    ack.error_code = code
    ack.error_message = why
    ack.base_offset = ack.append_time_ms = ack.start_offset = -1


def handle_produce(node: Node, slot: Slot, header: RequestHeader, frame: memoryview, now_ms: int) -> None:
    """Append every batch that may be appended; answer when all of them are durable or refused."""
    call = decode_produce(frame, header.size, header.api_version)
    _learn(node, slot.connection, header, frame, call, now_ms)
    pending = PendingProduce(node, slot, header, call.acks)
    entry = None
    if call.transactional_id is not None:
        entry = Entry(node, call.transactional_id.decode("utf-8", "replace"), header.api_version)
    by_id = header.api_version >= BY_TOPIC_ID
    for key, batches in call.topics:
        topic = node.catalog.find(key, by_id)
        acks = []
        for index, batch in batches:
            ack = PartitionAck(index)
            acks.append(ack)
            if call.acks not in _ACKS:
                refuse(ack, ErrorCode.INVALID_REQUIRED_ACKS, f"acks is -1, 0 or 1, not {call.acks}")
            elif topic is None:
                unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                refuse(ack, unknown, "this broker has no such topic")
            else:
                _append(node, pending, topic, ack, batch, entry, now_ms)
            if ack.error_code:
                node.counters.refused(ack.error_code)
        pending.topics.append((key, acks))
    if entry is not None:
        entry.close(pending, now_ms)
    pending.one_done()


def _learn(
    node: Node, connection: Connection, header: RequestHeader, frame: memoryview, call: ProduceCall, now_ms: int
) -> None:
    """Remember what this client's requests for a partition look like, so that the next one needs no decoding."""
    wire = learn_shape(frame, header.api_version, call)
    if wire is None:
        return
    key, ((index, _),) = call.topics[0]
    topic = node.catalog.find(key, header.api_version >= BY_TOPIC_ID)
    partition = node.partition(topic, index, now_ms) if topic is not None else None
    if topic is None or not isinstance(partition, Partition):
        return
    shapes, version = connection.shapes, node.catalog.version
    if shapes is None or not shapes.has_room(wire, version):
        connection.shapes = shapes = Shapes(Opening(wire.version, len(wire.middle)), version)
    shapes.known[wire.middle] = Shape(wire, key, topic, partition, index)


def _append(
    node: Node,
    pending: PendingProduce,
    topic: Topic,
    ack: PartitionAck,
    batch: memoryview | None,
    entry: Entry | None,
    now_ms: int,
) -> None:
    partition = node.partition(topic, ack.index, now_ms)
    if isinstance(partition, ErrorCode):
        return refuse(ack, partition, "this partition is not available")
    log = partition.log
    if log.stopped is not None:
        return refuse(ack, ErrorCode.KAFKA_STORAGE_ERROR, log.stopped)
    if batch is None or len(batch) < HEADER_SIZE:
        return refuse(ack, ErrorCode.CORRUPT_MESSAGE, "no record batch was sent")
    header = decode_header(batch)
    wrong = _batch_refusal(topic, batch, header, entry, now_ms)
    if wrong is None and header.is_transactional and entry is not None:
        wrong = entry.refuse(header, (topic.topic_id, ack.index))
        if wrong is None and is_undecided(log, header.producer_id):
            wrong = (
                ErrorCode.KAFKA_STORAGE_ERROR,
                "what ended the transaction before is damaged",
            )
    if wrong is not None:
        return refuse(ack, *wrong)
    if header.producer_id >= 0:
        known = log.producers.check(*header[9:13], header.is_transactional)
        if known is not None:
            _answer_known(node, pending, partition, ack, known)
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
        return refuse(ack, ErrorCode.KAFKA_STORAGE_ERROR, str(error))
    if header.is_transactional and entry is not None:
        entry.enter((topic.topic_id, ack.index), ack)
    elif header.producer_id >= 0:
        log.producers.admit(*header[9:13], ack.base_offset, now_ms)
    ack.start_offset = log.start_offset
    pending.wait_for(partition, ack)
    node.dirty[partition] = None
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
    node: Node, pending: PendingProduce, partition: Partition, ack: PartitionAck, known: Sent | Fault
) -> None:
    """A repeat is answered like the first time, and like it only once it is durable."""
    if known is Fault.FENCED:
        return refuse(ack, ErrorCode.INVALID_PRODUCER_EPOCH, known.value)
    if known is Fault.IN_TRANSACTION:
        return refuse(ack, ErrorCode.INVALID_TXN_STATE, known.value)
    if isinstance(known, Fault):
        return refuse(ack, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, known.value)
    ack.base_offset = known.base_offset
    ack.start_offset = partition.log.start_offset
    node.counters.repeats += 1
    if known.next_offset > partition.log.visible.offset:
        pending.wait_for(partition, ack)
        node.dirty[partition] = None
    return None

"""Produce requests like those before them: compared, not decoded, on the way to the same partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from crc32c import crc32c

from penstock.broker.catalog import Topic
from penstock.broker.connection import Connection, Slot
from penstock.broker.partition import Partition
from penstock.errors import ErrorCode, StorageError
from penstock.records.batch import CODECS, CRC_FROM, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC, unpack_facts
from penstock.records.compression import OpensTooLargeError
from penstock.wire.apis import ApiKey
from penstock.wire.produce import PartitionAck, encode_produce_response
from penstock.wire.shape import Opening, ProduceShape

if TYPE_CHECKING:
    from penstock.broker.node import Node

SHAPES_MAX: Final = 32  # partitions that one client writes to by turns without being decoded again; about 1 KB each
OPENINGS_MAX: Final = 4  # topics whose names differ in length
DISK_REFUSED: Final = "the disk did not take it"
_NONE = ErrorCode.NONE
_crc32c: Final = crc32c
_CODEC_COUNT: Final = len(CODECS)
_PRODUCE: Final = int(ApiKey.PRODUCE)


class Shape:
    """What a connection's produce requests for one partition look like, and where they go."""

    __slots__ = (
        "after_max_ms",
        "before_max_ms",
        "bytes_max",
        "checks_records",
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
        self.checks_records = config.checks_records
        self.after_max_ms = config.timestamp_after_max_ms
        self.before_max_ms = config.timestamp_before_max_ms
        self.is_stamped_here = config.log_append_time


class Shapes:
    """The shapes that a connection has shown, by what stands before the batch; true while the catalog is the same."""

    __slots__ = ("catalog_version", "known", "openings")

    def __init__(self, catalog_version: int) -> None:
        self.catalog_version = catalog_version
        self.known: dict[bytes, Shape] = {}
        self.openings: list[Opening] = []

    def add(self, shape: Shape) -> None:
        """Keep it while there is room: who writes to more places than that is decoded for the rest of them."""
        wire, known = shape.wire, self.known
        if wire.middle not in known and len(known) >= SHAPES_MAX:
            return
        if not any(opening.is_of(wire) for opening in self.openings):
            if len(self.openings) >= OPENINGS_MAX:
                return
            self.openings.append(Opening(wire.version, len(wire.middle)))
        known[wire.middle] = shape


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
            ack.refuse(code, DISK_REFUSED)
            self.node.counters.refused(code)
            reply = encode_produce_response(shape.wire.version, self.correlation_id, [(shape.key, [ack])])
        self.node.answer(self, reply)


def produce_shaped(node: Node, connection: Connection, shapes: Shapes, frame: memoryview, now_ms: int) -> bool:
    """The fast way for a request like one before; False, and nothing done, if anything is unusual about it."""
    if shapes.catalog_version != node.catalog.version:
        connection.shapes = None  # it holds partitions that may be gone
        return False
    for opening in shapes.openings:
        found = opening.split(frame)
        if found is not None:
            shape = shapes.known.get(found[1])
            if shape is not None and shape.wire.version == opening.version:
                return _produce(node, connection, shape, found[0], found[2], len(frame), now_ms)
    return False


def _is_sound(node: Node, batch: memoryview, codec: int, count: int) -> bool:
    """False as well for a batch that a step has no time to open."""
    try:
        return node.openings.fault(batch, codec, count) is None
    except OpensTooLargeError:
        return False


def _produce(
    node: Node,
    connection: Connection,
    shape: Shape,
    correlation_id: int,
    batch: memoryview,
    request_bytes: int,
    now_ms: int,
) -> bool:
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
    if shape.checks_records and not _is_sound(node, batch, attributes, count):
        return False
    producers = log.producers
    if pid >= 0 and (epoch < 0 or sequence < 0 or producers.check(pid, epoch, sequence, count) is not None):
        return False
    slot = ShapedProduce(node, connection, request_bytes, shape, correlation_id)
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

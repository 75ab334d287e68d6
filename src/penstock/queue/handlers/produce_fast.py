"""Produce requests like those before them: compared, not decoded, on the way to the same partitions."""

from __future__ import annotations

from typing import Final

from crc32c import crc32c

from penstock.errors import ErrorCode, StorageError
from penstock.kafka.records.batch import CODECS, CRC_FROM, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC, unpack_facts
from penstock.kafka.records.compression import OpensTooLargeError
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.produce import PartitionAck, encode_produce_response
from penstock.queue.core.connection import Connection, Slot
from penstock.queue.core.host import Host
from penstock.queue.core.pending_produce import DISK_REFUSED
from penstock.queue.core.produce_template import Shape, Shapes

_NONE = ErrorCode.NONE
_crc32c: Final = crc32c
_CODEC_COUNT: Final = len(CODECS)
_PRODUCE: Final = int(ApiKey.PRODUCE)


class ShapedProduce(Slot):
    """A request of a known shape that waits for its batch to become durable."""

    __slots__ = ("base_offset", "correlation_id", "host", "shape")

    def __init__(
        self, host: Host, connection: Connection, request_bytes: int, shape: Shape, correlation_id: int
    ) -> None:
        self.host = host
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
            self.host.counters.refused(code)
            reply = encode_produce_response(shape.wire.version, self.correlation_id, [(shape.key, [ack])])
        self.host.replies.answer(self, reply)


def produce_shaped(host: Host, connection: Connection, shapes: Shapes, frame: memoryview, now_ms: int) -> bool:
    """The fast way for a request like one before; False, and nothing done, if anything is unusual about it."""
    if shapes.catalog_version != host.catalog.version:
        connection.shapes = None  # it holds partitions that may be gone
        return False
    for opening in shapes.openings:
        found = opening.split(frame)
        if found is not None:
            shape = shapes.known.get(found[1])
            if shape is not None and shape.wire.version == opening.version:
                return _produce(host, connection, shape, found[0], found[2], len(frame), now_ms)
    return False


def _is_sound(host: Host, batch: memoryview, codec: int, count: int) -> bool:
    """False as well for a batch that a step has no time to open."""
    try:
        return host.openings.fault(batch, codec, count) is None
    except OpensTooLargeError:
        return False


def _produce(
    host: Host,
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
    if shape.checks_records and not _is_sound(host, batch, attributes, count):
        return False
    producers = log.producers
    if pid >= 0 and (epoch < 0 or sequence < 0 or producers.check(pid, epoch, sequence, count) is not None):
        return False
    slot = ShapedProduce(host, connection, request_bytes, shape, correlation_id)
    host.replies.enter(slot)
    host.counters.requests[_PRODUCE] += 1
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
    host.dirty[partition] = None
    return True

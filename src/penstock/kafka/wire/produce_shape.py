"""A producer's requests differ only in partition, correlation id and batch: learn the rest once, then compare bytes."""

from __future__ import annotations

from struct import Struct
from typing import Final

from penstock.kafka.wire.produce import BY_TOPIC_ID, FLEXIBLE, ProduceCall
from penstock.kafka.wire.raw import encode_uvarint

_HEAD = Struct(">hhi")
_INT32 = Struct(">i")
MIDDLE_BYTES_MAX: Final = 512  # names of client and topic, a few numbers; tags of any length are not remembered
_TAIL_BYTES: Final = 3  # no tagged fields: of the partition, the topic, the request


class Opening:
    """How one client's requests for one batch of one partition begin: a version, and so many bytes before the batch."""

    __slots__ = ("_at", "_middle_bytes", "_unpack", "version")

    def __init__(self, version: int, middle_bytes: int) -> None:
        """So many stand between the correlation id and the length of the batch."""
        self.version = version
        self._middle_bytes = middle_bytes
        head = Struct(f"{_HEAD.format}{middle_bytes}s")
        self._at = head.size
        self._unpack = head.unpack_from

    def is_of(self, shape: ProduceShape) -> bool:
        return self.version == shape.version and self._middle_bytes == len(shape.middle)

    def split(self, frame: memoryview) -> tuple[int, bytes, memoryview] | None:
        """Correlation id, what stands before the batch, and the batch; None if the request is of another kind."""
        at, end = self._at, len(frame)
        if at + 8 > end:
            return None
        head: tuple[int, int, int, bytes] = self._unpack(frame)
        key, version, correlation_id, middle = head
        if key != 0 or version != self.version:
            return None
        if version >= FLEXIBLE:
            end -= _TAIL_BYTES
            if frame[end] or frame[end + 1] or frame[end + 2]:
                return None
            size, shift = -1, 0
            while True:
                byte = frame[at]
                at += 1
                if byte < 0x80:
                    break
                size += (byte & 0x7F) << shift
                shift += 7
                if shift > 28:
                    return None
            size += byte << shift
        else:
            (size,) = _INT32.unpack_from(frame, at)
            at += 4
        return (correlation_id, middle, frame[at:end]) if size == end - at else None


class ProduceShape:
    """A produce request for one batch of one partition, as this client writes it: known by its `middle`."""

    __slots__ = ("_pack", "_reply_middle", "_reply_size", "_reply_tail", "middle", "version")

    def __init__(self, version: int, middle: bytes, key: bytes, index: int) -> None:
        self.version = version
        self.middle = middle
        before, self._reply_tail = _reply_parts(version, key, index)
        self._reply_middle = before
        layout = Struct(f">ii{len(before)}sqqq{len(self._reply_tail)}s")
        self._pack = layout.pack
        self._reply_size = layout.size - 4

    def encode_ack(self, correlation_id: int, base_offset: int, start_offset: int) -> bytes:
        """The response frame for a batch that was stored."""
        return self._pack(
            self._reply_size, correlation_id, self._reply_middle, base_offset, -1, start_offset, self._reply_tail
        )


def learn_shape(frame: memoryview, version: int, call: ProduceCall) -> ProduceShape | None:
    """The shape of a request just decoded, if it is of the simple kind."""
    if version < 5 or len(call.topics) != 1 or len(call.topics[0][1]) != 1 or call.acks not in (-1, 1):
        return None
    key, ((index, batch),) = call.topics[0]
    if batch is None or call.transactional_id is not None:
        return None
    tail = _TAIL_BYTES if version >= FLEXIBLE else 0
    size_bytes = len(encode_uvarint(len(batch) + 1)) if version >= FLEXIBLE else 4
    middle_bytes = len(frame) - tail - len(batch) - size_bytes - _HEAD.size
    if middle_bytes > MIDDLE_BYTES_MAX:
        return None
    middle = frame[_HEAD.size : _HEAD.size + middle_bytes].tobytes()
    found = Opening(version, len(middle)).split(frame)
    return ProduceShape(version, middle, key, index) if found is not None and found[1] == middle else None


def _reply_parts(version: int, key: bytes, index: int) -> tuple[bytes, bytes]:
    """What stands before and after the three offsets of an ack."""
    where = _INT32.pack(index) + b"\0\0"
    if version >= FLEXIBLE:
        name = key if version >= BY_TOPIC_ID else encode_uvarint(len(key) + 1) + key
        # No record errors, no message, no tags; no tags of the topic; throttle time; no tags of the response.
        return b"\0\2" + name + b"\2" + where, b"\1\0\0" + b"\0" + b"\0\0\0\0" + b"\0"
    before = b"\0\0\0\1" + len(key).to_bytes(2, "big") + key + b"\0\0\0\1" + where
    return before, (b"\0\0\0\0\xff\xff" if version >= 8 else b"") + b"\0\0\0\0"

"""The durable point of a partition, written after every sync: a sound lower bound of what was acknowledged.

It is not synced itself before an acknowledgement. After kill -9 it is exact, because the page cache lives on; after a
power cut it may be old, but it never claims too much.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

_SLOT = Struct(">qqqqq")
_CRC = Struct(">I")
SLOT_SIZE = _SLOT.size + _CRC.size
# In different sectors: a torn write spoils one of them only. One is durable, one may be on its way, one is written to.
SLOT_POSITIONS = (0, 512, 1024)
SLOTS = len(SLOT_POSITIONS)
FILE_SIZE = 1536


class DurablePoint(NamedTuple):
    """Everything below `offset`, which stands at `position` in segment `segment`, is durable."""

    generation: int
    offset: int
    segment: int
    position: int
    reserved: int  # a memory topic may have given out offsets up to this one


def encode_durable_point(witness: DurablePoint) -> bytes:
    body = _SLOT.pack(*witness)
    return body + _CRC.pack(crc32c(body))


def decode_durable_point(data: bytes) -> DurablePoint | None:
    """The newest of the slots that are whole, or None."""
    found = [slot for at in SLOT_POSITIONS if (slot := decode_slot(data[at : at + SLOT_SIZE])) is not None]
    return max(found, key=lambda slot: slot.generation, default=None)


def decode_slot(data: bytes) -> DurablePoint | None:
    """What one slot says, or None if it is not whole."""
    body, tail = data[: _SLOT.size], data[_SLOT.size :]
    if len(tail) < _CRC.size or _CRC.unpack(tail)[0] != crc32c(body):
        return None
    return DurablePoint._make(_SLOT.unpack(body))

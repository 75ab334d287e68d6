"""The durable point of a partition, written after every sync: a sound lower bound of what was acknowledged.

It is not synced itself before an acknowledgement. After kill -9 it is exact, because the page cache lives on; after a
power cut it may be old, but it never claims too much.
"""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from penstock.ports import File

_SLOT = Struct(">qqqqq")
_CRC = Struct(">I")
SLOT_POSITIONS = (0, 512)  # in different sectors: a torn write spoils one of them only
FILE_SIZE = 1024


class Witness(NamedTuple):
    """Everything below `offset`, which stands at `position` in segment `segment`, is durable."""

    generation: int
    offset: int
    segment: int
    position: int
    reserved: int  # a memory topic may have given out offsets up to this one


def encode_witness(witness: Witness) -> bytes:
    body = _SLOT.pack(*witness)
    return body + _CRC.pack(crc32c(body))


def decode_witness(data: bytes) -> Witness | None:
    """The newer of the two slots that is whole, or None."""
    found = None
    for at in SLOT_POSITIONS:
        body = data[at : at + _SLOT.size]
        tail = data[at + _SLOT.size : at + _SLOT.size + _CRC.size]
        if len(tail) < _CRC.size or _CRC.unpack(tail)[0] != crc32c(body):
            continue
        slot = Witness._make(_SLOT.unpack(body))
        if found is None or slot.generation > found.generation:
            found = slot
    return found


def write_witness(file: File, witness: Witness) -> None:
    file.write(SLOT_POSITIONS[witness.generation % 2], (encode_witness(witness),))

"""Frames that no honest client sends: mutated requests of every API and version, and openings that are nonsense."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple
from uuid import UUID

from penstock.kafka.records.batch import MAGIC, BatchHeader, encode_batch
from penstock.kafka.records.record import encode_varint
from penstock.kafka.wire.apis import APIS, Api
from penstock.kafka.wire.fields import Column, Scalar
from penstock.kafka.wire.header import encode_request_header
from penstock.kafka.wire.message import Struct, columns, encode

OPENINGS = {
    "length -1": struct.pack(">i", -1),
    "length 0": struct.pack(">i", 0),
    "length 2^31-1": struct.pack(">i", 2**31 - 1),
    "TLS greeting": bytes.fromhex("16030100c8010000c40303") + bytes(190),
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
}
_WORST = (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\x00\x00\x00\x00", b"\xff\xff\xff\xff\x0f")


class Honest(NamedTuple):
    """A request that makes sense, to be spoiled."""

    api: Api
    version: int
    frame: bytes


def honest_requests(chance: random.Random, topic: str) -> Iterator[Honest]:
    """One request of each API and version, with something in every field."""
    for api in APIS.values():
        for version in range(api.min_version, api.max_version + 1):
            body = encode(_filled(api.request, version, chance, topic), version)
            head = encode_request_header(api.key, version, chance.randrange(2**31), "garbage")
            yield Honest(api, version, head + body)


def _filled(cls: type[Any], version: int, chance: random.Random, topic: str) -> Any:
    made = cls()
    for name, column in columns(cls):
        if column.is_in(version):
            value = [_value(column, version, chance, topic)] if column.is_array else None
            setattr(made, name, value if column.is_array else _value(column, version, chance, topic))
    return made


def _value(column: Column, version: int, chance: random.Random, topic: str) -> object:
    of = column.of
    if not isinstance(of, Scalar):
        if not issubclass(of, Struct):
            raise TypeError(f"{of} is no part of a message")
        return _filled(of, version, chance, topic)
    match of.name:
        case "string":
            return topic
        case "data":
            return a_batch(b"mutant")
        case "boolean":
            return chance.random() < 0.5
        case "uuid":
            return UUID(int=chance.getrandbits(128))
        case "float64":
            return chance.random()
    return chance.choice((0, 0, 1, 2, -1))


def a_batch(value: bytes) -> bytes:
    """A whole record batch with one record."""
    inner = b"\0" + encode_varint(0) + encode_varint(0) + encode_varint(-1)
    inner += encode_varint(len(value)) + value + encode_varint(0)
    header = BatchHeader(
        base_offset=0, length=0, leader_epoch=-1, magic=MAGIC, crc=0, attributes=0, last_delta=0, base_timestamp=1,
        max_timestamp=1, producer_id=-1, producer_epoch=-1, base_sequence=-1, record_count=1,
    )  # fmt: skip
    return bytes(encode_batch(header, encode_varint(len(inner)) + inner))


def mutate(chance: random.Random, frame: bytes) -> bytes:
    """The frame, spoiled in one to three places; its API and version are mostly left alone."""
    data = bytearray(frame)
    for _ in range(chance.randrange(1, 4)):
        first = 0 if chance.random() < 0.05 else min(8, len(data))
        at = chance.randrange(first, len(data) + 1)
        match chance.randrange(6):
            case 0:
                data[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del data[at:]
            case 2:
                worst = chance.choice(_WORST)
                data[at : at + len(worst)] = worst
            case 3:
                data[at:at] = chance.randbytes(chance.randrange(1, 9))
            case 4:
                del data[at : at + chance.randrange(1, 9)]
            case _:
                data += chance.randbytes(chance.randrange(1, 60))
    return bytes(data) or b"\0"


def count_bomb(key: int, version: int) -> bytes:
    """A header, then a claim of two billion: an array's count in the APIs whose body begins with an array."""
    head = encode_request_header(key, version, 1, "bomb")
    flexible = version >= APIS[key].flexible
    return head + (b"\xff\xff\xff\xff\x07" if flexible else b"\x7f\xff\xff\xff")

"""What a partition knows of its producers, as a file: saved now and then, rebuilt from the log if it is lost."""

from __future__ import annotations

import msgspec
from crc32c import crc32c

from penstock.queue.log.producers import Producer, ProducerTable, Sent


class _Snapshot(msgspec.Struct, array_like=True):
    offset: int
    producers: list[tuple[int, int, list[tuple[int, int, int, int]], int, int]]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Snapshot)


def encode_snapshot(table: ProducerTable, offset: int) -> bytes:
    """The state after all batches below `offset`."""
    rows = [(pid, p.epoch, [tuple(b) for b in p.batches], p.seen_ms, p.first_offset) for pid, p in table.known.items()]
    body = _encoder.encode(_Snapshot(offset, rows))  # type: ignore[arg-type]  # tuples of ints, as declared
    return body + crc32c(body).to_bytes(4, "big")


def decode_snapshot(data: bytes, table: ProducerTable) -> int | None:
    """Fill `table` and say up to which offset it holds, or None when the snapshot is damaged."""
    if len(data) < 4 or crc32c(data[:-4]) != int.from_bytes(data[-4:], "big"):
        return None
    try:
        snapshot = _decoder.decode(data[:-4])
    except msgspec.DecodeError:
        return None
    for producer_id, epoch, batches, *rest in snapshot.producers:
        table.known[producer_id] = Producer(epoch, tuple(Sent(*b) for b in batches), *rest)
    return snapshot.offset

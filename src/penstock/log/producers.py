"""Idempotent producers of one partition: the last five batches of each, so that a repeat is recognised."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import msgspec
from crc32c import crc32c

REMEMBERED = 5  # as many requests as an idempotent client keeps in flight
_SEQUENCE_MOD = 2**31


class Sent(NamedTuple):
    """One batch that was stored."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    next_offset: int


class Producer(NamedTuple):
    """What is known of one producer id."""

    epoch: int
    batches: tuple[Sent, ...]
    seen_ms: int


class Fault(Enum):
    """Why a producer's batch is refused."""

    FENCED = "a producer with a newer epoch has taken over"
    OUT_OF_ORDER = "the sequence does not follow the last one"


class ProducerTable:
    """State by producer id; changes are staged by `admit` and count only after `commit`."""

    def __init__(self, producers_max: int) -> None:
        self.known: dict[int, Producer] = {}
        self._staged: dict[int, Producer] = {}
        self._missing: dict[int, tuple[int, int]] = {}
        self._producers_max = producers_max

    def check(self, producer_id: int, epoch: int, first: int, count: int) -> Sent | Fault | None:
        """None: store it. Sent: it was stored before, there. Fault: refuse it."""
        producer = self._staged.get(producer_id) or self.known.get(producer_id)
        if producer is None:
            # Like Kafka, accept any first sequence (retention may have removed the rest), unless an earlier one of
            # this producer just failed here: accepting this one would reorder them for ever.
            missing = self._missing.get(producer_id)
            if missing is not None and missing[0] == epoch and first > missing[1]:
                return Fault.OUT_OF_ORDER
            return None
        if epoch < producer.epoch:
            return Fault.FENCED
        if epoch > producer.epoch:
            return None if first == 0 else Fault.OUT_OF_ORDER
        if first == (producer.batches[-1].last_sequence + 1) % _SEQUENCE_MOD:
            return None
        last = (first + count - 1) % _SEQUENCE_MOD
        for sent in producer.batches:
            if sent.first_sequence == first and sent.last_sequence == last:
                return sent
        return Fault.OUT_OF_ORDER

    def admit(self, producer_id: int, epoch: int, first: int, count: int, base_offset: int, now_ms: int) -> None:
        """Stage a batch that `check` let pass and that is about to be written."""
        producer = self._staged.get(producer_id) or self.known.get(producer_id)
        sent = Sent(first, (first + count - 1) % _SEQUENCE_MOD, base_offset, base_offset + count)
        earlier = producer.batches if producer is not None and producer.epoch == epoch else ()
        self._staged[producer_id] = Producer(epoch, (*earlier[1 - REMEMBERED :], sent), now_ms)

    def commit(self) -> None:
        """The write succeeded: what was staged is true."""
        if not self._staged:
            return
        for producer_id in self._staged:
            self.known.pop(producer_id, None)  # re-inserted below, so that the dict is in order of last use
            self._missing.pop(producer_id, None)
        self.known.update(self._staged)
        self._staged.clear()
        while len(self.known) > self._producers_max:
            self.known.pop(next(iter(self.known)))

    def discard(self) -> None:
        """The write failed: what was staged never happened."""
        for producer_id, producer in self._staged.items():
            self.miss(producer_id, producer.epoch, producer.batches[0].first_sequence)
        self._staged.clear()

    def miss(self, producer_id: int, epoch: int, first: int) -> None:
        """A batch of this producer could not be stored: what it sent behind it must wait for its repeat."""
        if producer_id >= 0 and producer_id not in self.known and len(self._missing) < self._producers_max:
            self._missing.setdefault(producer_id, (epoch, first))

    def expire(self, before_ms: int) -> None:
        """Forget producers not heard of since `before_ms`."""
        for producer_id, producer in list(self.known.items()):
            if producer.seen_ms >= before_ms:
                return
            del self.known[producer_id]


class _Snapshot(msgspec.Struct, array_like=True):
    offset: int
    producers: list[tuple[int, int, list[tuple[int, int, int, int]], int]]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Snapshot)


def encode_snapshot(table: ProducerTable, offset: int) -> bytes:
    """The state after all batches below `offset`."""
    rows = [(pid, p.epoch, [tuple(b) for b in p.batches], p.seen_ms) for pid, p in table.known.items()]
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
    for producer_id, epoch, batches, seen_ms in snapshot.producers:
        table.known[producer_id] = Producer(epoch, tuple(Sent(*b) for b in batches), seen_ms)
    return snapshot.offset

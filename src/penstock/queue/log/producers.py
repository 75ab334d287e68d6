"""Producers of one partition: the last five batches of each, so that a repeat is recognised; its transaction."""

from __future__ import annotations

from enum import Enum
from itertools import islice
from typing import NamedTuple

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
    first_offset: int = -1  # of its open transaction


class Fault(Enum):
    """Why a producer's batch is refused."""

    FENCED = "a producer with a newer epoch has taken over"
    OUT_OF_ORDER = "the sequence does not follow the last one"
    IN_TRANSACTION = "a transaction of this producer is open, and the batch is not part of it"


class ProducerTable:
    """State by producer id; changes are staged by `admit` and count only after `commit`."""

    def __init__(self, producers_max: int) -> None:
        self.known: dict[int, Producer] = {}
        self._staged: dict[int, Producer] = {}
        self._missing: dict[int, tuple[int, int]] = {}
        self._producers_max = producers_max

    def get(self, producer_id: int) -> Producer | None:
        """A producer as the next batch finds it."""
        return self._staged.get(producer_id) or self.known.get(producer_id)

    def check(
        self, producer_id: int, epoch: int, first: int, count: int, is_transactional: bool = False
    ) -> Sent | Fault | None:
        """None: store it. Sent: it was stored before, there. Fault: refuse it."""
        producer = self._staged.get(producer_id) or self.known.get(producer_id)
        if producer is None:
            # Like Kafka, accept any first sequence (retention may have removed the rest), unless an earlier one of
            # this producer just failed here: accepting this one would reorder them for ever.
            missing = self._missing.get(producer_id)
            if missing is not None and missing[0] == epoch and first > missing[1]:
                return Fault.OUT_OF_ORDER
            return None
        newest, batches, _, first_offset = producer
        if epoch == newest and batches:
            follows = first == (batches[-1].last_sequence + 1) % _SEQUENCE_MOD
        elif epoch < newest:
            return Fault.FENCED
        else:
            follows = first == 0  # a new epoch, or one that only its marker has brought so far
        if follows:
            return None if is_transactional or first_offset < 0 else Fault.IN_TRANSACTION
        if epoch > newest:
            return Fault.OUT_OF_ORDER
        last = (first + count - 1) % _SEQUENCE_MOD
        for sent in batches:
            if sent.first_sequence == first and sent.last_sequence == last:
                return sent
        return Fault.OUT_OF_ORDER

    def admit(
        self,
        producer_id: int,
        epoch: int,
        first: int,
        count: int,
        base_offset: int,
        now_ms: int,
        is_transactional: bool = False,
    ) -> bool:
        """Stage a batch that `check` let pass and that is about to be written; True if a transaction begins with it."""
        producer = self._staged.get(producer_id) or self.known.get(producer_id)
        sent = Sent(first, (first + count - 1) % _SEQUENCE_MOD, base_offset, base_offset + count)
        batches: tuple[Sent, ...] = (sent,)
        first_offset = -1
        if producer is not None:
            newest, earlier, _, first_offset = producer
            if newest == epoch:
                batches = (*earlier[1 - REMEMBERED :], sent)
        begins = is_transactional and first_offset < 0
        self._staged[producer_id] = Producer(epoch, batches, now_ms, base_offset if begins else first_offset)
        return begins

    def end(self, producer_id: int, epoch: int, now_ms: int) -> int:
        """Stage the end of a producer's transaction; its first offset, -1 if none was open."""
        producer = self.get(producer_id) or Producer(epoch, (), now_ms)
        batches = producer.batches if producer.epoch == epoch else ()
        self._staged[producer_id] = Producer(epoch, batches, now_ms)
        return producer.first_offset

    def commit(self) -> None:
        """The write succeeded: what was staged is true."""
        if not self._staged:
            return
        for producer_id in self._staged:
            self.known.pop(producer_id, None)  # re-inserted below, so that the dict is in order of last use
            self._missing.pop(producer_id, None)
        self.known.update(self._staged)
        self._staged.clear()
        if len(self.known) > self._producers_max:
            self._forget_silent()

    def _forget_silent(self) -> None:
        """Keep the number of producers; those with an open transaction are needed until it ends."""
        too_many = len(self.known) - self._producers_max
        # No generator: compiled, it would be a list of all of them.
        silent = filter(lambda row: row[1].first_offset < 0, self.known.items())
        for producer_id, _ in list(islice(silent, too_many)):
            del self.known[producer_id]

    def discard(self) -> None:
        """The write failed: what was staged never happened."""
        for producer_id, producer in self._staged.items():
            if producer.batches:
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
            if producer.first_offset < 0:
                del self.known[producer_id]

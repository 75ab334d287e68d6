"""Idempotent producers: a repeat is recognised, a gap is refused, as Kafka does it."""

from __future__ import annotations

import pytest
from asking.batches import batch_of, lines
from asking.connection import Connection
from asking.requests import LATEST, create_topic, list_offset, new_producer, produce, produce_request

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.produce import ProduceRequest, ProduceResponse

REMEMBERED = 5
LAST_SEQUENCE = 2**31 - 1


class Sender:
    """One idempotent producer on one topic, sending whatever sequence a test wants."""

    def __init__(self, connection: Connection, topic: str) -> None:
        create_topic(connection, topic, partitions=2)
        self.connection, self.topic = connection, topic
        self.producer_id, self.epoch = new_producer(connection)

    def send(self, sequence: int, count: int = 2, *, epoch: int | None = None, partition: int = 0) -> tuple[int, int]:
        """Error code and base offset that a batch of `count` records from `sequence` on is answered with."""
        batch = self.batch(sequence, count, self.epoch if epoch is None else epoch)
        answer = produce(self.connection, self.topic, batch, partition)
        return answer.error_code, answer.base_offset

    def batch(self, sequence: int, count: int, epoch: int = 0) -> bytearray:
        values = lines(*(f"{sequence}+{delta}" for delta in range(count)))
        return batch_of(values, producer_id=self.producer_id, epoch=epoch, sequence=sequence)

    @property
    def end(self) -> int:
        return list_offset(self.connection, self.topic, LATEST)[2]


@pytest.fixture
def sender(connection: Connection, topic: str) -> Sender:
    return Sender(connection, topic)


OUT_OF_ORDER = (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, -1)


def test_a_repeat_of_the_last_five_is_answered_with_its_first_offset(sender: Sender) -> None:
    """Each of the last five batches, sent again in any order, is acknowledged and not stored."""
    for number in range(REMEMBERED):
        assert sender.send(2 * number) == (0, 2 * number)
    for number in reversed(range(REMEMBERED)):
        assert sender.send(2 * number) == (0, 2 * number)
    assert sender.end == 2 * REMEMBERED


def test_what_is_older_than_five_batches_is_out_of_order(sender: Sender) -> None:
    """The sixth last batch is not known any more, and not stored again either."""
    for number in range(REMEMBERED + 1):
        sender.send(2 * number)
    assert sender.send(0) == OUT_OF_ORDER
    assert sender.end == 2 * (REMEMBERED + 1)


@pytest.mark.parametrize(("sequence", "count"), [(4, 2), (1, 2), (0, 1), (0, 3), (3, 2)])
def test_a_gap_or_an_overlap_is_out_of_order(sender: Sender, sequence: int, count: int) -> None:
    """Only the next sequence, or exactly a batch from before, is accepted."""
    sender.send(0)
    assert sender.send(sequence, count) == OUT_OF_ORDER
    assert sender.send(2) == (0, 2)


def test_an_old_epoch_is_fenced(sender: Sender) -> None:
    """After a newer epoch has written, the old one cannot, not even a repeat."""
    sender.send(0)
    assert sender.send(0, epoch=1) == (0, 2)
    assert sender.send(2, epoch=0) == FENCED
    assert sender.send(0, epoch=0) == FENCED
    assert sender.send(2, epoch=1) == (0, 4)


def test_a_new_epoch_starts_at_sequence_zero(sender: Sender) -> None:
    """A newer epoch that goes on counting is out of order."""
    sender.send(0)
    assert sender.send(2, epoch=1) == OUT_OF_ORDER
    assert sender.send(2, epoch=0) == (0, 2)


def test_an_unknown_producer_may_start_anywhere(sender: Sender) -> None:
    """The broker may have forgotten it by retention: any first sequence is accepted, then they must follow."""
    assert sender.send(40) == (0, 0)
    assert sender.send(42) == (0, 2)
    assert sender.send(46) == OUT_OF_ORDER


def test_sequences_wrap_around(sender: Sender) -> None:
    """After the largest sequence comes zero, also in the middle of a batch."""
    assert sender.send(LAST_SEQUENCE - 1, 1) == (0, 0)
    assert sender.send(LAST_SEQUENCE, 3) == (0, 1)
    assert sender.send(2, 1) == (0, 4)
    assert sender.send(LAST_SEQUENCE, 3) == (0, 1)


def test_each_partition_counts_for_itself(sender: Sender) -> None:
    """The same sequences on another partition are no repeats."""
    assert sender.send(0) == (0, 0)
    assert sender.send(0, partition=1) == (0, 0)
    assert sender.send(2, partition=1) == (0, 2)
    assert sender.send(2) == (0, 2)


def test_a_repeat_on_another_connection_is_recognised(sender: Sender, broker_address: str) -> None:
    """A client that lost its connection sends again on a new one."""
    sender.send(0)
    with Connection(broker_address) as other:
        answer = produce(other, sender.topic, sender.batch(0, 2))
    assert (answer.error_code, answer.base_offset) == (0, 0)
    assert sender.end == 2


def test_five_batches_in_flight_are_stored_in_order(sender: Sender) -> None:
    """Sent without waiting for answers, as idempotent clients do."""
    for number in range(REMEMBERED):
        sender.connection.send(produce_request(sender.topic, sender.batch(2 * number, 2)), 9)
    offsets = []
    for _ in range(REMEMBERED):
        _, answer = sender.connection.receive(ProduceRequest, 9)
        assert isinstance(answer, ProduceResponse)
        offsets.append(answer.responses[0].partition_responses[0].base_offset)
    assert offsets == [0, 2, 4, 6, 8]


def test_a_repeat_right_behind_the_first_is_answered_like_it(sender: Sender) -> None:
    """Both are in flight at once: one is stored, both are acknowledged with its offset."""
    request = produce_request(sender.topic, sender.batch(0, 2))
    sender.connection.send(request, 9)
    sender.connection.send(request, 9)
    for _ in range(2):
        _, answer = sender.connection.receive(ProduceRequest, 9)
        assert isinstance(answer, ProduceResponse)
        assert answer.responses[0].partition_responses[0].base_offset == 0
    assert sender.end == 2


def test_what_was_refused_does_not_count(sender: Sender) -> None:
    """A batch that failed its checksum leaves the sequence where it was."""
    broken = sender.batch(0, 2)
    broken[70] ^= 1
    assert produce(sender.connection, sender.topic, broken).error_code == ErrorCode.CORRUPT_MESSAGE
    assert sender.send(0) == (0, 0)

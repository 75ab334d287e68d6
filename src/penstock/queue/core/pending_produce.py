"""A produce request whose batches become durable one by one; answered when all have, or are refused."""

from __future__ import annotations

from typing import NamedTuple

from penstock.errors import ErrorCode
from penstock.kafka.wire.header import RequestHeader
from penstock.kafka.wire.produce import PartitionAck, encode_produce_response
from penstock.queue.core.connection import Slot
from penstock.queue.core.counters import Counters
from penstock.queue.core.partition import Partition
from penstock.queue.core.replies import Replies

DISK_REFUSED = "the disk did not take it"
_NONE = ErrorCode.NONE


class PendingProduce:
    """An answer that waits for some of its partitions."""

    __slots__ = ("acks", "correlation_id", "counters", "pending", "replies", "slot", "topics", "version")

    def __init__(self, replies: Replies, counters: Counters, slot: Slot, header: RequestHeader, acks: int) -> None:
        self.replies = replies
        self.counters = counters
        self.slot = slot
        self.version = header.api_version
        self.correlation_id = header.correlation_id
        self.acks = acks
        self.pending = 1  # the handler itself, until it has looked at every partition
        self.topics: list[tuple[bytes, list[PartitionAck]]] = []

    def one_done(self) -> None:
        self.pending -= 1
        if self.pending == 0:
            if self.acks == 0:
                self._end_silently()
            else:
                frame = encode_produce_response(self.version, self.correlation_id, self.topics)
                self.replies.answer(self.slot, [frame])

    def _end_silently(self) -> None:
        refused = next((ack for _, acks in self.topics for ack in acks if ack.error_code), None)
        if refused is None:
            self.replies.answer(self.slot, [])
        else:
            # As Kafka does: only the end of the connection makes such a client look for what is wrong.
            self.replies.close(self.slot.connection, "refused", f"with acks=0: {refused.error_message}")

    def wait_for(self, partition: Partition, ack: PartitionAck) -> None:
        """Count this partition in, until its log says what became of the batch."""
        self.pending += 1
        partition.when_durable(_OneOfMany(self, ack))


class _OneOfMany(NamedTuple):
    """One batch of a request that waits to become durable."""

    request: PendingProduce
    ack: PartitionAck

    def done(self, code: ErrorCode) -> None:
        if code is not _NONE:
            self.ack.refuse(code, DISK_REFUSED)
            self.request.counters.refused(code)
        self.request.one_done()

"""What one produce request brings into its transaction."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import BatchHeader
from penstock.kafka.wire.produce import PartitionAck
from penstock.queue.core.pending_produce import PendingProduce
from penstock.queue.transactions.changes import PartitionKey
from penstock.queue.transactions.coordinator import Coordinator
from penstock.queue.transactions.rules import BY_EPOCH, Owner

SAYS_ABORTABLE = 11  # from this version of Produce on clients know TRANSACTION_ABORTABLE
ADDS_ITSELF = 12  # and from this one on they leave it to the broker to add partitions (KIP-890)


class Entry:
    """Verifies each batch with the coordinator, and adds what is not in the transaction yet."""

    __slots__ = ("_acks", "_id", "_keys", "_transactions", "_version")

    def __init__(self, transactions: Coordinator, transactional_id: str, version: int) -> None:
        self._transactions = transactions
        self._id = transactional_id
        self._version = version
        self._keys: list[PartitionKey] = []
        self._acks: list[PartitionAck] = []

    def refuse(self, header: BatchHeader, key: PartitionKey) -> tuple[ErrorCode, str] | None:
        """Why the producer of this batch may not write to this partition now, as its version of Produce says it."""
        transactions = self._transactions
        code = transactions.refuse(self._id, Owner(header.producer_id, header.producer_epoch))
        if code is ErrorCode.PRODUCER_FENCED:
            return ErrorCode.INVALID_PRODUCER_EPOCH, "a producer with a newer epoch has taken over"
        if code is ErrorCode.CONCURRENT_TRANSACTIONS:
            known = self._version >= ADDS_ITSELF
            return code if known else ErrorCode.NOT_ENOUGH_REPLICAS, "the last transaction is still being ended"
        if code:
            return code, "this producer does not have the transactional id"
        if self._version < ADDS_ITSELF and not transactions.holds(self._id, key):
            known = self._version >= SAYS_ABORTABLE
            code = ErrorCode.TRANSACTION_ABORTABLE if known else ErrorCode.INVALID_TXN_STATE
            return code, "the partition was not added to the transaction"
        return None

    def enter(self, key: PartitionKey, ack: PartitionAck) -> None:
        """A batch is stored in this partition: it has to be in the transaction before that is acknowledged."""
        if not self._transactions.holds(self._id, key):
            self._keys.append(key)
            self._acks.append(ack)

    def close(self, pending: PendingProduce, now_ms: int) -> None:
        """Add what came in; the answer waits until that is durable, too."""
        if not self._keys:
            return
        pending.pending += 1

        def finish(code: ErrorCode) -> None:
            for ack in self._acks if code else ():
                ack.error_code = ack.error_code or ErrorCode.NOT_ENOUGH_REPLICAS
                ack.error_message = "the partition could not be added to the transaction"
            pending.one_done()

        self._transactions.add(self._id, self._keys, (), BY_EPOCH, finish, now_ms)

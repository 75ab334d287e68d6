"""What is durable of all transactions; only replay_ changes it, live and after a restart."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.queue.transactions.changes import Change, Restarted, Transaction, TransactionGone


class TransactionTable:
    """Transactions by their id, and by the producer that has it."""

    def __init__(self) -> None:
        self.transactions: dict[str, Transaction] = {}
        self._by_producer: dict[int, str] = {}

    def get(self, transactional_id: str) -> Transaction | None:
        return self.transactions.get(transactional_id)

    def of_producer(self, producer_id: int) -> Transaction | None:
        return self.transactions.get(self._by_producer.get(producer_id, ""))

    def replay_(self, change: Change) -> None:
        """Make a durable change true."""
        match change:
            case Transaction():
                self._forget(change.transactional_id)
                self.transactions[change.transactional_id] = change
                self._by_producer[change.producer_id] = change.transactional_id
            case TransactionGone(transactional_id=transactional_id):
                self._forget(transactional_id)
            case Restarted():
                self.transactions.clear()
                self._by_producer.clear()

    def _forget(self, transactional_id: str) -> None:
        gone = self.transactions.pop(transactional_id, None)
        if gone is not None:
            self._by_producer.pop(gone.producer_id, None)

    def snapshot(self) -> Iterator[Change]:
        """Changes that make this table from nothing."""
        yield Restarted()
        yield from self.transactions.values()

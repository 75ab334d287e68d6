"""Make a partition that was opened, and the coordinator, agree on which transactions are open."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from penstock.errors import ErrorCode
from penstock.queue.core.host import Host
from penstock.queue.core.partition import Partition
from penstock.queue.groups.coordinator import Coordinator as Groups
from penstock.queue.log.transaction_batches import is_undecided
from penstock.queue.transactions.changes import PartitionKey, Transaction
from penstock.queue.transactions.markers import end_in
from penstock.queue.transactions.rules import BY_EPOCH


class Transactions(Protocol):
    """What is asked of the coordinator of transactions here."""

    def of_producer(self, producer_id: int) -> Transaction | None: ...

    def add(
        self,
        transactional_id: str,
        partitions: Iterable[PartitionKey],
        groups: Iterable[str],
        version: int,
        finish: Callable[[ErrorCode], None],
        now_ms: int,
    ) -> None: ...


class _NoWaiter:
    """Ignores the result. If the abort fails, the next opening of the partition repeats it."""

    def done(self, code: ErrorCode) -> None: ...


def agree_on(host: Host, transactions: Transactions, partition: Partition, key: PartitionKey, now_ms: int) -> None:
    """Records may be durable while it is not that their partition is in the transaction: add it, or abort them."""
    log = partition.log
    for offset in list(log.transactions.open):
        producer_id = next(pid for pid, known in log.producers.known.items() if known.first_offset == offset)
        epoch = log.producers.known[producer_id].epoch
        if is_undecided(log, producer_id):
            continue  # how it ended, somebody else has to say
        known = transactions.of_producer(producer_id)
        if known is not None and key in known.partitions:
            continue
        if known is None or known.epoch != epoch or known.state.is_ending or log.config.in_memory:
            host.notes.note(
                "warning", "transaction aborted in one partition", partition=partition.name, producer=producer_id
            )
            end_in(host, partition, producer_id, epoch, False, _NoWaiter(), now_ms)
        else:
            transactions.add(known.transactional_id, [key], (), BY_EPOCH, lambda _: None, now_ms)


def agree_on_held(groups: Groups, transactions: Transactions, now_ms: int) -> None:
    """The same for positions of groups, after a start."""
    for producer_id, all_held in list(groups.table.held.items()):
        known = transactions.of_producer(producer_id)
        for held in all_held:
            if known is None or held.epoch != (known.begun_epoch if known.state.is_ending else known.epoch):
                groups.release(producer_id, held.epoch, False, lambda _: None, now_ms)
            elif not known.state.is_ending and held.group_id not in known.groups:
                transactions.add(known.transactional_id, (), [held.group_id], BY_EPOCH, lambda _: None, now_ms)

"""Tell every partition and group of a transaction how it ended; what knows already is left alone."""

from __future__ import annotations

from penstock.errors import ErrorCode, StorageError
from penstock.queue.core.host import Host
from penstock.queue.core.partition import Partition, Waiter
from penstock.queue.core.table_log import Finish
from penstock.queue.groups.coordinator import Coordinator as Groups
from penstock.queue.log.transaction_batches import append_marker
from penstock.queue.transactions.changes import Transaction


class _Telling:
    """Counts those that are not told yet; `finish` is told when all are, or have failed."""

    def __init__(self, finish: Finish) -> None:
        self._finish = finish
        self._missing = 1  # the caller, until it has begun with all of them
        self._code = ErrorCode.NONE

    def begin(self) -> None:
        self._missing += 1

    def done(self, code: ErrorCode) -> None:
        self._code = self._code or code
        self._missing -= 1
        if not self._missing:
            self._finish(self._code)


def end_everywhere(host: Host, groups: Groups, ending: Transaction, finish: Finish, now_ms: int) -> None:
    """Write the markers of a transaction whose end is decided; `finish` hears when all of them are durable."""
    telling = _Telling(finish)
    for topic_id, index in ending.partitions:
        topic = host.catalog.by_id(topic_id)
        partition = host.partition(topic, index, now_ms) if topic is not None else None
        if partition is None or partition is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            continue  # deleted, and with it what it held
        telling.begin()
        if isinstance(partition, Partition):
            end_in(host, partition, ending.producer_id, ending.epoch, ending.state.is_commit, telling, now_ms)
        else:
            telling.done(partition)
    if ending.groups or ending.producer_id in groups.table.held:
        telling.begin()
        groups.release(ending.producer_id, ending.begun_epoch, ending.state.is_commit, telling.done, now_ms)
    telling.done(ErrorCode.NONE)


def end_in(
    host: Host, partition: Partition, producer_id: int, epoch: int, is_commit: bool, waiter: Waiter, now_ms: int
) -> None:
    """Write the marker if the producer has a transaction open here; `waiter` hears when it is durable."""
    log = partition.log
    producer = log.producers.get(producer_id)
    if log.stopped is not None:
        waiter.done(ErrorCode.KAFKA_STORAGE_ERROR)
    elif producer is None or producer.first_offset < 0 or producer.epoch > epoch:
        waiter.done(ErrorCode.NONE)
    else:
        try:
            append_marker(log, producer_id, epoch, is_commit, now_ms)
        except StorageError:
            partition.fail_staged()
            waiter.done(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        partition.when_durable(waiter)
        host.dirty[partition] = None

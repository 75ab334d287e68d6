"""How a transaction goes on: each request with the state it meets gives the next state, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec.structs import replace

from penstock.errors import ErrorCode
from penstock.queue.transactions.changes import PartitionKey, State, Transaction

EPOCH_LAST = 32_766  # one more is left, to fence its owner
BY_EPOCH = 2  # transaction version from which on the epoch grows with every end (KIP-890)


class Owner(NamedTuple):
    """Who a request says it is."""

    producer_id: int
    epoch: int


class Ended(NamedTuple):
    """A repeated request: it has ended that way already."""

    transaction: Transaction


def refuse(transaction: Transaction | None, owner: Owner) -> ErrorCode:
    """Why this owner may not add to the transaction now, or NONE."""
    if transaction is None or transaction.producer_id != owner.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.epoch != owner.epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.CONCURRENT_TRANSACTIONS if transaction.state.is_ending else ErrorCode.NONE


def init_takes_new_id(transaction: Transaction | None, expected: Owner | None) -> bool:
    """Whether initialising needs a producer id that nobody had."""
    if transaction is None:
        return True
    if transaction.state.is_ending or transaction.state is State.ONGOING or transaction.epoch < EPOCH_LAST:
        return False
    return expected is None or expected == (transaction.producer_id, transaction.epoch)


def plan_init(
    transactional_id: str,
    transaction: Transaction | None,
    expected: Owner | None,
    timeout_ms: int,
    new_id: int,
    now_ms: int,
) -> Transaction | ErrorCode:
    """A producer begins to work under this id; `new_id` is used if `init_takes_new_id`."""
    if transaction is None:
        return Transaction(transactional_id, new_id, 0, State.EMPTY, timeout_ms, now_ms)
    if expected is not None and not _may_be_owner(transaction, expected):
        return ErrorCode.PRODUCER_FENCED
    if transaction.state.is_ending:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if transaction.state is State.ONGOING:
        return plan_fence(transaction, (), now_ms)
    empty = Transaction(
        transactional_id, transaction.producer_id, transaction.epoch, State.EMPTY, timeout_ms, now_ms,
        previous_producer_id=transaction.previous_producer_id,
    )  # fmt: skip
    if init_takes_new_id(transaction, expected):
        last_epoch = transaction.epoch if expected is not None else -1
        return replace(
            empty, producer_id=new_id, epoch=0, last_epoch=last_epoch, previous_producer_id=transaction.producer_id
        )
    if expected is None:
        return replace(empty, epoch=transaction.epoch + 1)
    if expected.epoch == transaction.epoch:
        return replace(empty, epoch=transaction.epoch + 1, last_epoch=transaction.epoch)
    if expected.epoch == transaction.last_epoch:
        return replace(empty, last_epoch=transaction.last_epoch)  # a repeat, whose answer was lost
    return ErrorCode.PRODUCER_FENCED


def _may_be_owner(transaction: Transaction, expected: Owner) -> bool:
    if expected.producer_id == transaction.producer_id:
        return True
    return expected.producer_id == transaction.previous_producer_id and expected.epoch >= EPOCH_LAST


def plan_add(
    transaction: Transaction, partitions: Iterable[PartitionKey], groups: Iterable[str], version: int, now_ms: int
) -> Transaction:
    """More belongs to the transaction; the first begins it. The caller has asked `refuse`."""
    if transaction.state is not State.ONGOING:
        transaction = replace(
            transaction, state=State.ONGOING, started_ms=now_ms, partitions=(), groups=(), begun_epoch=transaction.epoch
        )
    return replace(
        transaction,
        partitions=tuple(dict.fromkeys((*transaction.partitions, *partitions))),
        groups=tuple(dict.fromkeys((*transaction.groups, *groups))),
        version=version,
        updated_ms=now_ms,
    )


def plan_fence(transaction: Transaction, strays: Iterable[PartitionKey], now_ms: int) -> Transaction:
    """Abort it without its owner, whose epoch counts no longer."""
    return replace(
        transaction,
        state=State.PREPARE_ABORT,
        epoch=transaction.epoch + 1,
        last_epoch=-1,
        partitions=tuple(dict.fromkeys((*transaction.partitions, *strays))),
        version=BY_EPOCH,
        updated_ms=now_ms,
    )


def end_takes_new_id(transaction: Transaction | None, version: int) -> bool:
    """Whether the end of this transaction uses up the epochs of its producer."""
    return transaction is not None and version >= BY_EPOCH and transaction.epoch >= EPOCH_LAST


def plan_end(
    transaction: Transaction | None,
    owner: Owner,
    is_commit: bool,
    version: int,
    strays: tuple[PartitionKey, ...],
    new_id: int,
    now_ms: int,
) -> Transaction | Ended | ErrorCode:
    """Its owner commits or aborts it; `new_id` is used if `end_takes_new_id`."""
    if transaction is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    grew = min(version, transaction.version) >= BY_EPOCH
    is_repeat = grew and transaction.epoch == owner.epoch + 1
    if grew and _overflowed(transaction, owner):
        is_repeat = True
    elif transaction.producer_id != owner.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    state = transaction.state
    if state is State.ONGOING or (state is State.EMPTY and transaction.epoch == owner.epoch):
        is_repeat = False
    if not is_repeat and (transaction.epoch != owner.epoch or (state.is_ending and transaction.version >= BY_EPOCH)):
        return ErrorCode.PRODUCER_FENCED
    if state is State.ONGOING or (not is_repeat and _is_empty_abort(state, is_commit, version)):
        return _prepare(transaction, is_commit, version, strays, new_id, now_ms)
    if state is State.EMPTY or state.is_commit != is_commit or (version >= BY_EPOCH and not is_repeat):
        return ErrorCode.INVALID_TXN_STATE
    return ErrorCode.CONCURRENT_TRANSACTIONS if state.is_ending else Ended(transaction)


def _is_empty_abort(state: State, is_commit: bool, version: int) -> bool:
    """Nothing of it arrived; the epoch grows all the same, so that nothing of it can arrive later."""
    return version >= BY_EPOCH and not is_commit and not state.is_ending


def _overflowed(transaction: Transaction, owner: Owner) -> bool:
    """Whether this owner's transaction was ended, and another producer id given for the next."""
    return (
        transaction.previous_producer_id == owner.producer_id and owner.epoch >= EPOCH_LAST and transaction.epoch == 0
    )


def _prepare(
    transaction: Transaction,
    is_commit: bool,
    version: int,
    strays: tuple[PartitionKey, ...],
    new_id: int,
    now_ms: int,
) -> Transaction:
    grows = version >= BY_EPOCH
    if transaction.state is not State.ONGOING:
        transaction = replace(transaction, partitions=(), groups=(), begun_epoch=transaction.epoch, started_ms=now_ms)
    return replace(
        transaction,
        state=State.PREPARE_COMMIT if is_commit else State.PREPARE_ABORT,
        epoch=transaction.epoch + 1 if grows else transaction.epoch,
        last_epoch=transaction.epoch if grows else transaction.last_epoch,
        next_producer_id=new_id if end_takes_new_id(transaction, version) else -1,
        partitions=tuple(dict.fromkeys((*transaction.partitions, *strays))),
        version=version,
        updated_ms=now_ms,
    )


def plan_complete(transaction: Transaction, now_ms: int) -> Transaction:
    """All its markers are durable."""
    done = replace(
        transaction,
        state=State.COMPLETE_COMMIT if transaction.state.is_commit else State.COMPLETE_ABORT,
        partitions=(),
        groups=(),
        next_producer_id=-1,
        updated_ms=now_ms,
    )
    if transaction.next_producer_id < 0:
        return done
    return replace(
        done, producer_id=transaction.next_producer_id, epoch=0, previous_producer_id=transaction.producer_id
    )

"""All transactions of this node: begun, added to, ended and timed out here; the rules are in the module beside."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from penstock.config.setting import clipped
from penstock.errors import ErrorCode
from penstock.ports import Disk
from penstock.queue.core.deadlines import Alarm, Alarms
from penstock.queue.core.host import Host
from penstock.queue.core.notes import Notes
from penstock.queue.core.producer_ids import OnProducerId
from penstock.queue.core.table_log import Finish, TableLog, open_journal
from penstock.queue.groups.coordinator import Coordinator as Groups
from penstock.queue.log.layout import TRANSACTIONS_FOLDER
from penstock.queue.transactions.changes import (
    Change,
    PartitionKey,
    State,
    Transaction,
    TransactionGone,
    decode_change,
    encode_change,
)
from penstock.queue.transactions.markers import end_everywhere
from penstock.queue.transactions.recovery import agree_on_held
from penstock.queue.transactions.rules import (
    BY_EPOCH,
    Ended,
    Owner,
    end_takes_new_id,
    init_takes_new_id,
    plan_add,
    plan_complete,
    plan_end,
    plan_fence,
    plan_init,
    refuse,
)
from penstock.queue.transactions.table import TransactionTable

# The only answer about an id after which every client stops asking: librdkafka repeats what is invalid for ever.
REFUSED_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
AGAIN_MS = 1_000  # when a marker could not be written
SWEEP_AT_ONCE = 200  # ids a step: looking through all of them at once would stall every client
SWEEP_PAUSE_MS = 100

TransactionJournal = TableLog[TransactionTable, Change]
OnOwner = Callable[[ErrorCode, Owner], None]
NOBODY = Owner(-1, -1)


class Coordinator:
    """What of transactions is durable stands in `table`; here is what is on its way there."""

    def __init__(self, host: Host, groups: Groups, journal: TransactionJournal, now_ms: int) -> None:
        self.journal = journal
        self.table = journal.table
        self._host = host
        self._groups = groups
        self._config = host.config
        self._newest: dict[str, Transaction] = {}  # written, not durable yet
        self._writes: dict[str, int] = {}
        self._exclusive: dict[str, None] = {}  # nothing may be planned on top of what is being written
        self._strays: dict[str, dict[PartitionKey, None]] = {}  # written to, but their adding failed
        self._telling: dict[str, None] = {}  # their markers are being written
        self._alarms = Alarms()
        self._alarm_of: dict[str, Alarm] = {}
        for transaction in self.table.transactions.values():
            if transaction.state.is_ending:
                self._ring_at(transaction.transactional_id, now_ms)
            elif transaction.state is State.ONGOING:
                self._ring_at(transaction.transactional_id, now_ms + transaction.timeout_ms)
        self._alarms.set(Alarm(lambda now_ms: agree_on_held(groups, self, now_ms)), now_ms)
        self._sweep_alarm = Alarm(self._sweep)
        self._unswept: list[str] = []
        self._alarms.set(self._sweep_alarm, now_ms)

    def newest(self, transactional_id: str) -> Transaction | None:
        """A transaction as the next request finds it."""
        return self._newest.get(transactional_id) or self.table.get(transactional_id)

    def of_producer(self, producer_id: int) -> Transaction | None:
        """The transaction that this producer writes to, as the next request finds it."""
        known = self.table.of_producer(producer_id)
        newest = None if known is None else self.newest(known.transactional_id)
        return newest if newest is not None and newest.producer_id == producer_id else None

    def _is_busy(self, transactional_id: str) -> bool:
        """Whether a request that decides something has to come again."""
        if transactional_id in self._exclusive or transactional_id in self._telling:
            return True
        newest = self._newest.get(transactional_id)
        return newest is not None and newest.state is State.ONGOING

    # Beginning.

    def init(self, transactional_id: str, expected: Owner | None, timeout_ms: int, reply: OnOwner, now_ms: int) -> None:
        """A producer begins to work under this id, and whoever did before is fenced."""
        if self._is_busy(transactional_id):
            reply(ErrorCode.CONCURRENT_TRANSACTIONS, NOBODY)
            return
        known = self.newest(transactional_id)
        strays = self._strays.get(transactional_id)
        if known is None and len(self.table.transactions) >= self._config.transactional_ids_max:
            refuse_id(self._host.notes, transactional_id, "there are too many (transactional_ids_max)")
            reply(REFUSED_ID, NOBODY)
            return

        def with_id(code: ErrorCode, new_id: int) -> None:
            del self._exclusive[transactional_id]
            if code:
                reply(code, NOBODY)
                return
            planned = plan_init(transactional_id, known, expected, timeout_ms, new_id, now_ms)
            if strays and known is not None and isinstance(planned, Transaction):
                planned = plan_fence(known, strays, now_ms)
            if isinstance(planned, ErrorCode):
                reply(planned, NOBODY)
            elif planned.state.is_ending:
                self._decide(planned, lambda code, _: reply(code or ErrorCode.CONCURRENT_TRANSACTIONS, NOBODY), now_ms)
            else:
                self._write(planned, lambda code: reply(code, _owner(planned)), now_ms, is_exclusive=True)

        self._exclusive[transactional_id] = None
        if init_takes_new_id(known, expected):
            self._with_new_id(with_id, now_ms)
        else:
            with_id(ErrorCode.NONE, -1)

    def _with_new_id(self, done: OnProducerId, now_ms: int) -> None:
        if not self._host.producer_ids.take(done, now_ms):
            done(ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)

    # Adding.

    def refuse(self, transactional_id: str, owner: Owner) -> ErrorCode:
        """Why this owner may not add to its transaction now, or NONE."""
        code = refuse(self.newest(transactional_id), owner)
        return code or (ErrorCode.CONCURRENT_TRANSACTIONS if transactional_id in self._exclusive else ErrorCode.NONE)

    def holds(self, transactional_id: str, key: PartitionKey | str) -> bool:
        """Whether a partition or a group is durably in the ongoing transaction."""
        known, newest = self.table.get(transactional_id), self.newest(transactional_id)
        if known is None or newest is None or known.state is not State.ONGOING or known.epoch != newest.epoch:
            return False
        return key in known.groups if isinstance(key, str) else key in known.partitions

    def add(
        self,
        transactional_id: str,
        partitions: Iterable[PartitionKey],
        groups: Iterable[str],
        version: int,
        finish: Finish,
        now_ms: int,
    ) -> None:
        """More belongs to the transaction; `finish` is told when that is durable. Ask `refuse` first."""
        newest = self.newest(transactional_id)
        if newest is None:
            finish(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            return
        partitions, groups = tuple(partitions), tuple(groups)
        if groups and len(newest.groups) >= self._config.transaction_groups_max:
            finish(ErrorCode.POLICY_VIOLATION)
            return
        if newest.state is not State.ONGOING:
            self._ring_at(transactional_id, now_ms + newest.timeout_ms)

        def finish_add(code: ErrorCode) -> None:
            if code and version >= BY_EPOCH:
                self._strays.setdefault(transactional_id, {}).update(dict.fromkeys(partitions))
            finish(code)

        self._write(plan_add(newest, partitions, groups, version, now_ms), finish_add, now_ms)

    # Ending.

    def end(
        self, transactional_id: str, owner: Owner, is_commit: bool, version: int, reply: OnOwner, now_ms: int
    ) -> None:
        """Its owner commits or aborts its transaction."""
        known = self.newest(transactional_id)
        strays = tuple(self._strays.get(transactional_id, ()))

        def with_id(code: ErrorCode, new_id: int) -> None:
            self._exclusive.pop(transactional_id, None)
            planned = code or plan_end(known, owner, is_commit, version, strays, new_id, now_ms)
            if isinstance(planned, Ended):
                reply(ErrorCode.NONE, _owner(planned.transaction))
            elif isinstance(planned, Transaction):
                self._decide(planned, reply, now_ms)
            else:
                reply(planned, NOBODY)

        # What is refused is refused at once, whatever is being written.
        tried = plan_end(known, owner, is_commit, version, strays, -1, now_ms)
        if isinstance(tried, ErrorCode):
            reply(tried, NOBODY)
        elif self._is_busy(transactional_id):
            reply(ErrorCode.CONCURRENT_TRANSACTIONS, NOBODY)
        elif isinstance(tried, Transaction) and end_takes_new_id(known, version):
            self._exclusive[transactional_id] = None
            self._with_new_id(with_id, now_ms)
        else:
            with_id(ErrorCode.NONE, -1)

    def _decide(self, planned: Transaction, reply: OnOwner, now_ms: int) -> None:
        """Write how it ends; from then on that is true, whatever happens."""

        def decided(code: ErrorCode) -> None:
            if code:
                reply(code, NOBODY)
                return
            self._strays.pop(planned.transactional_id, None)
            self._finish(planned, reply, now_ms)

        self._write(planned, decided, now_ms, is_exclusive=True)

    def _finish(self, ending: Transaction, reply: OnOwner, now_ms: int) -> None:
        """Tell every partition and group of the end; the answer leaves when all of them know it or have failed."""
        done = plan_complete(ending, now_ms)

        def told(code: ErrorCode) -> None:
            del self._telling[ending.transactional_id]
            if code:
                # The decision stands: whoever could not be told must not make its owner doubt it.
                self._ring_at(ending.transactional_id, now_ms + AGAIN_MS)
            else:
                self._write(done, lambda _: None, now_ms)
            reply(ErrorCode.NONE, _owner(done))

        self._telling[ending.transactional_id] = None
        end_everywhere(self._host, self._groups, ending, told, now_ms)

    # Writing.

    def _write(self, planned: Transaction, finish: Finish, now_ms: int, *, is_exclusive: bool = False) -> None:
        name = planned.transactional_id
        self._newest[name] = planned
        self._writes[name] = self._writes.get(name, 0) + 1
        if is_exclusive:
            self._exclusive[name] = None

        def written(code: ErrorCode) -> None:
            if is_exclusive:
                del self._exclusive[name]
            self._writes[name] -= 1
            if not self._writes[name]:
                del self._writes[name], self._newest[name]
            newest = self.newest(name)
            if code and newest is not None and newest.state.is_ending:
                self._ring_at(name, now_ms + AGAIN_MS)
            finish(code)

        self.journal.write([planned], written, now_ms)

    # Time.

    def _ring_at(self, transactional_id: str, due_ms: int) -> None:
        alarm = self._alarm_of.get(transactional_id)
        if alarm is None:
            alarm = self._alarm_of[transactional_id] = Alarm(lambda now_ms: self._on_alarm(transactional_id, now_ms))
        self._alarms.set(alarm, due_ms)

    def _on_alarm(self, transactional_id: str, now_ms: int) -> None:
        """Go on with what stands still: an end that could not be written everywhere, or an owner that is silent."""
        known = self.newest(transactional_id)
        if known is None:
            return
        if self._is_busy(transactional_id):
            self._ring_at(transactional_id, now_ms + AGAIN_MS)
        elif known.state.is_ending:
            self._finish(known, lambda *_: None, now_ms)
        elif known.state is State.ONGOING or transactional_id in self._strays:
            self._host.notes.note("warning", "transaction timed out", transactional_id=transactional_id)
            strays = self._strays.get(transactional_id, ())

            def fenced(code: ErrorCode, _: Owner) -> None:
                if code:
                    self._ring_at(transactional_id, now_ms + AGAIN_MS)

            self._decide(plan_fence(known, strays, now_ms), fenced, now_ms)

    @property
    def next_deadline_ms(self) -> int | None:
        return self._alarms.next_ms

    def on_time(self, now_ms: int) -> None:
        for alarm in self._alarms.due(now_ms):
            if alarm.ring is not None:
                alarm.ring(now_ms)

    def _sweep(self, now_ms: int) -> None:
        """Forget ids that nobody has used for long."""
        if not self._unswept:
            self._unswept = list(self.table.transactions)
        some, self._unswept = self._unswept[-SWEEP_AT_ONCE:], self._unswept[:-SWEEP_AT_ONCE]
        for name in some:
            known = self.newest(name)
            is_idle = known is not None and not known.state.is_ending and known.state is not State.ONGOING
            if known is None or not is_idle or name in self._writes or name in self._strays:
                continue
            if now_ms - known.updated_ms >= self._config.transactional_id_expiry_ms:
                self._alarm_of.pop(name, None)
                self.journal.write([TransactionGone(name)], lambda _: None, now_ms)
        pause_ms = SWEEP_PAUSE_MS if self._unswept else self._config.transactional_ids_check_ms
        self._alarms.set(self._sweep_alarm, now_ms + pause_ms)


def _owner(transaction: Transaction) -> Owner:
    return Owner(transaction.producer_id, transaction.epoch)


def refuse_id(notes: Notes, transactional_id: str, reason: str) -> None:
    """Say in the log what the code of the answer cannot."""
    notes.note("warning", "transactional id refused", transactional_id=clipped(transactional_id), reason=reason)


def open_transactions(host: Host, groups: Groups, disk: Disk, now_ms: int) -> Coordinator:
    """The journal of transactions, replayed. StorageError if it is damaged."""
    journal = open_journal(
        disk,
        TRANSACTIONS_FOLDER,
        TransactionTable(),
        encode_change,
        decode_change,
        host.config,
        now_ms,
        host.dirty,
        host.partitions.advance,
    )
    return Coordinator(host, groups, journal, now_ms)

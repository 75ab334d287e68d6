"""What a history says beyond one partition: transactions, and groups with their positions."""

from __future__ import annotations

from penstock.assure.history import Ask, Assign, Begin, Commit, Committed, Decide, Ended, Outcome, Poll, Position, Send

Dealing = Begin | Decide | Ended | Commit | Committed | Ask | Position
Place = tuple[str, int]
# Later than every event: what was never answered may still happen.
OPEN = 2**62


class Transaction:
    """One transaction: what was written in it, and whether it may, must or must not be seen."""

    __slots__ = ("asked", "begun", "ended", "group", "is_committed", "is_refused", "name", "writes")

    def __init__(self, name: str, begun: int, group: str | None) -> None:
        self.name = name
        self.begun = begun
        self.group = group
        self.writes: list[tuple[Place, str, str | None]] = []
        self.asked = 0
        self.ended = 0
        self.is_committed = False
        self.is_refused = False

    @property
    def is_aborted(self) -> bool:
        """It cannot have been committed: nobody asked for it, or it was refused for certain."""
        return not self.asked or (self.is_refused and not self.is_committed)


class Advance:
    """One commit of one position."""

    __slots__ = ("begun", "done", "offset", "process", "since", "transaction")

    def __init__(self, process: str, offset: int, begun: int, since: int, transaction: Transaction | None) -> None:
        self.process = process
        self.offset = offset
        self.begun = begun
        self.since = since
        self.transaction = transaction
        self.done = OPEN

    @property
    def is_acked(self) -> bool:
        if self.transaction is not None:
            return self.transaction.is_committed
        return 0 < self.done < OPEN

    @property
    def is_void(self) -> bool:
        """It can never have taken effect."""
        return self.transaction.is_aborted if self.transaction is not None else self.done == 0

    @property
    def last_moment(self) -> int:
        """The last event before which it can have taken effect."""
        if self.transaction is not None:
            return self.transaction.ended if self.transaction.is_committed else OPEN
        return self.done


class Look:
    """One position as somebody was told it."""

    __slots__ = ("answered", "asked", "offset", "process")

    def __init__(self, process: str, offset: int | None, asked: int, answered: int) -> None:
        self.process = process
        self.offset = offset
        self.asked = asked
        self.answered = answered


class Share:
    """What one group did with one partition."""

    __slots__ = ("advances", "committed", "looks", "offsets")

    def __init__(self) -> None:
        self.committed = False
        self.offsets: set[int] = set()
        self.advances: list[Advance] = []
        self.looks: list[Look] = []


class Dealings:
    """All transactions, and the share of each group in each partition."""

    def __init__(self) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.shares: dict[tuple[str, str, int], Share] = {}
        self.incomplete: list[str] = []
        self._given: dict[tuple[str, str, int], int] = {}
        self._groups: dict[tuple[str, int, str, int], str] = {}
        self._open: dict[tuple[str, str, str, int], Advance] = {}
        self._asked: dict[tuple[str, str], int] = {}

    def take(self, number: int, event: Dealing) -> None:
        """An event that is about nothing but transactions or positions."""
        match event:
            case Begin():
                self.on_begin(number, event)
            case Decide():
                self.on_decide(number, event)
            case Ended():
                self.on_ended(number, event)
            case Commit():
                self.on_commit(number, event)
            case Committed():
                self.on_committed(number, event)
            case Ask():
                self.on_ask(number, event)
            case Position():
                self.on_position(number, event)

    def on_begin(self, number: int, event: Begin) -> None:
        self.transactions[event.transaction] = Transaction(event.transaction, number, event.group)

    def on_send(self, number: int, event: Send) -> None:
        if event.transaction is not None:
            place = (event.topic, event.partition)
            self._transaction(number, event.transaction).writes.append((place, event.value, event.source))

    def on_decide(self, number: int, event: Decide) -> None:
        transaction = self._transaction(number, event.transaction)
        if event.commit:
            transaction.asked = transaction.asked or number

    def on_ended(self, number: int, event: Ended) -> None:
        transaction = self._transaction(number, event.transaction)
        transaction.ended = number
        if event.commit:
            # Once asked to commit, only the answer to that says that it was not: a late abort proves nothing.
            transaction.is_committed = transaction.is_committed or event.outcome is Outcome.OK
            transaction.is_refused = transaction.is_refused or event.outcome is Outcome.FAIL

    def on_assign(self, number: int, event: Assign) -> None:
        self._given[event.process, event.topic, event.partition] = number
        if event.group is not None:
            self._groups[event.process, event.assignment, event.topic, event.partition] = event.group
            self._share(event.group, event.topic, event.partition).committed = event.committed

    def on_poll(self, event: Poll) -> None:
        group = self._groups.get((event.process, event.assignment, event.topic, event.partition))
        if group is not None:
            self._share(group, event.topic, event.partition).offsets.update(offset for offset, _ in event.records)

    def on_commit(self, number: int, event: Commit) -> None:
        place = (event.topic, event.partition)
        transaction = None if event.transaction is None else self._transaction(number, event.transaction)
        since = self._given.get((event.process, *place), 0)
        advance = Advance(event.process, event.offset, number, since, transaction)
        self._share(event.group, *place).advances.append(advance)
        if transaction is None:
            self._open[event.process, event.group, *place] = advance

    def on_committed(self, number: int, event: Committed) -> None:
        advance = self._open.pop((event.process, event.group, event.topic, event.partition), None)
        if advance is None:
            self.incomplete.append(f"event {number} answers a commit that was not recorded")
        elif event.outcome is not Outcome.UNKNOWN:
            advance.done = number if event.outcome is Outcome.OK else 0

    def on_ask(self, number: int, event: Ask) -> None:
        self._asked[event.process, event.group] = number

    def on_position(self, number: int, event: Position) -> None:
        asked = self._asked.get((event.process, event.group), 0)
        share = self._share(event.group, event.topic, event.partition)
        share.looks.append(Look(event.process, event.offset, asked, number))

    def _transaction(self, number: int, name: str) -> Transaction:
        found = self.transactions.get(name)
        if found is None:
            self.incomplete.append(f"event {number} belongs to transaction {name}, whose begin was not recorded")
            found = self.transactions[name] = Transaction(name, number, None)
        return found

    def _share(self, group: str, topic: str, partition: int) -> Share:
        key = (group, topic, partition)
        found = self.shares.get(key)
        if found is None:
            found = self.shares[key] = Share()
        return found

"""The durable state of all groups, and the log that it is replayed from; only replay_ changes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

from penstock.config.broker import BrokerConfig
from penstock.ports import Disk
from penstock.queue.core.partition import Partition
from penstock.queue.core.table_log import TableLog, open_journal
from penstock.queue.groups.changes import (
    Change,
    ConsumerEpoch,
    ConsumerMember,
    ConsumerMemberGone,
    ConsumerTarget,
    GroupGone,
    GroupStored,
    OffsetsCommitted,
    OffsetsForgotten,
    OffsetsHeld,
    OffsetsReleased,
    Position,
    Restarted,
    StoredMember,
    decode_change,
    encode_change,
)
from penstock.queue.groups.consumer.table import ConsumerTable
from penstock.queue.log.layout import GROUPS_FOLDER

POSITION_BYTES = 100  # what a position takes besides its metadata

Positions = dict[tuple[UUID, int], Position]


class GroupTable:
    """Generations and positions by the name of their group."""

    def __init__(self) -> None:
        self.consumers = ConsumerTable()
        self._clear()

    def _clear(self) -> None:
        self.groups: dict[str, GroupStored] = {}
        self.consumers.clear()
        self.positions: dict[str, Positions] = {}
        self.held: dict[int, list[OffsetsHeld]] = {}  # by producer, until its transaction ends
        self.holders: dict[str, dict[int, None]] = {}  # producers by group
        self.bytes = 0

    def __contains__(self, group_id: str) -> bool:
        return group_id in self.groups or group_id in self.positions or group_id in self.consumers.groups

    def position(self, group_id: str, topic_id: UUID, partition: int) -> Position | None:
        positions = self.positions.get(group_id)
        return None if positions is None else positions.get((topic_id, partition))

    def is_held(self, group_id: str) -> bool:
        """Whether a transaction may still change this group's positions."""
        return group_id in self.holders

    def is_unstable(self, group_id: str, topic_id: UUID, partition: int) -> bool:
        """Whether a transaction may still change this position."""
        return any(
            (position.topic_id, position.partition) == (topic_id, partition)
            for producer_id in self.holders.get(group_id, ())
            for held in self.held[producer_id]
            if held.group_id == group_id
            for position in held.positions
        )

    def replay_(self, change: Change) -> None:
        """Make a durable change true."""
        match change:
            case OffsetsCommitted(group_id=group_id, positions=committed):
                self._commit(group_id, committed)
            case OffsetsHeld(producer_id=producer_id):
                self._set_held(producer_id, [*self.held.get(producer_id, ()), change])
            case OffsetsReleased(producer_id=producer_id, epoch=epoch, is_commit=is_commit):
                ended = [held for held in self.held.get(producer_id, ()) if held.epoch <= epoch]
                self._set_held(producer_id, [held for held in self.held.get(producer_id, ()) if held.epoch > epoch])
                for held in ended:
                    if is_commit and held.epoch == epoch:
                        self._commit(held.group_id, held.positions)
            case OffsetsForgotten(group_id=group_id, partitions=partitions):
                positions = self.positions.get(group_id, {})
                for key in partitions:
                    self._forget(positions, key)
                if not positions:
                    self.positions.pop(group_id, None)
            case ConsumerEpoch(group_id=group_id):
                self._drop(group_id)  # it was of the classic protocol before, perhaps
                self.consumers.replay_(change)
            case ConsumerTarget() | ConsumerMember() | ConsumerMemberGone():
                self.consumers.replay_(change)
            case GroupStored(group_id=group_id):
                self._drop(group_id)
                self.consumers.remove(group_id)
                self.groups[group_id] = change
                self.bytes += group_bytes(change.members)
            case GroupGone(group_id=group_id):
                self._drop(group_id)
                self.consumers.remove(group_id)
                positions = self.positions.pop(group_id, {})
                self.bytes -= sum(map(_size, positions.values()))
                for producer_id in list(self.holders.get(group_id, ())):
                    self._set_held(producer_id, [h for h in self.held[producer_id] if h.group_id != group_id])
            case Restarted():
                self._clear()

    def _commit(self, group_id: str, committed: tuple[Position, ...]) -> None:
        positions = self.positions.setdefault(group_id, {})
        for position in committed:
            self._forget(positions, (position.topic_id, position.partition))
            positions[position.topic_id, position.partition] = position
            self.bytes += _size(position)

    def _set_held(self, producer_id: int, now: list[OffsetsHeld]) -> None:
        for held in self.held.pop(producer_id, ()):
            self.bytes -= sum(map(_size, held.positions))
            self.holders.get(held.group_id, {}).pop(producer_id, None)
            if not self.holders.get(held.group_id, True):
                del self.holders[held.group_id]
        for held in now:
            self.bytes += sum(map(_size, held.positions))
            self.holders.setdefault(held.group_id, {})[producer_id] = None
        if now:
            self.held[producer_id] = now

    def _forget(self, positions: Positions, key: tuple[UUID, int]) -> None:
        gone = positions.pop(key, None)
        if gone is not None:
            self.bytes -= _size(gone)

    def _drop(self, group_id: str) -> None:
        stored = self.groups.pop(group_id, None)
        if stored is not None:
            self.bytes -= group_bytes(stored.members)

    def snapshot(self) -> Iterator[Change]:
        """Changes that make this table from nothing."""
        yield Restarted()
        yield from self.groups.values()
        yield from self.consumers.snapshot()
        for group_id, positions in self.positions.items():
            yield OffsetsCommitted(group_id, tuple(positions.values()))
        for held in self.held.values():
            yield from held


def _size(position: Position) -> int:
    return POSITION_BYTES + len(position.metadata)


def group_bytes(members: tuple[StoredMember, ...]) -> int:
    return sum(len(member.subscription) + len(member.assignment) for member in members)


GroupJournal = TableLog[GroupTable, Change]


def open_group_journal(
    disk: Disk,
    config: BrokerConfig,
    now_ms: int,
    *,
    dirty: dict[Partition, None],
    advance: Callable[[Partition, int], None],
) -> GroupJournal:
    """The group log, replayed. StorageError if it is damaged."""
    table = GroupTable()
    return open_journal(disk, GROUPS_FOLDER, table, encode_change, decode_change, config, now_ms, dirty, advance)

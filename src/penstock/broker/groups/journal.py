"""The group log."""

from __future__ import annotations

from collections.abc import Callable

from penstock.broker.groups.changes import Change, decode_change, encode_change
from penstock.broker.groups.table import GroupTable
from penstock.broker.journal import Journal, open_journal
from penstock.broker.partition import Partition
from penstock.config import BrokerConfig
from penstock.log.layout import GROUPS_FOLDER
from penstock.ports import Disk

GroupJournal = Journal[GroupTable, Change]


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

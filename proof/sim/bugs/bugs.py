"""Bugs planted on purpose: a check counts only if it has caught its plant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from penstock.errors import ErrorCode
from penstock.queue import node
from penstock.queue.core import metadata_log as metalog
from penstock.queue.core import partitions as store
from penstock.queue.core.events import Synced
from penstock.queue.core.memory_budget import MemoryBudget
from penstock.queue.core.metadata_log import MetaLog
from penstock.queue.core.partition import Partition
from penstock.queue.core.producer_ids import ProducerIds
from penstock.queue.core.replies import Replies
from penstock.queue.core.table_log import TableLog
from penstock.queue.core.waiting_fetch import Loads
from penstock.queue.groups.classic import rebalance
from penstock.queue.groups.classic.group import Group
from penstock.queue.groups.consumer import heartbeat
from penstock.queue.groups.coordinator import Coordinator as GroupCoordinator
from penstock.queue.groups.table import GroupTable
from penstock.queue.handlers import fetch
from penstock.queue.log import durable_point_file as witness_file
from penstock.queue.log import producers, reading, recovery
from penstock.queue.log.log import Log, SyncTargets
from penstock.queue.log.producers import ProducerTable
from penstock.queue.log.segment import Segment
from penstock.queue.node import Node
from penstock.queue.transactions import markers as ending
from penstock.queue.transactions.coordinator import Coordinator
from proof.sim.bugs import groups as group_plants
from proof.sim.bugs import loads as load_plants
from proof.sim.bugs import transactions as transaction_plants


@dataclass(frozen=True, slots=True)
class Plant:
    """A bug: what it replaces, and the invariants that convict it, each alone."""

    name: str
    owner: object
    attribute: str
    make: Callable[[Any], Any]
    convicted_by: tuple[str, ...]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The bug is in the code as long as this lasts."""
        sound = getattr(self.owner, self.attribute)
        setattr(self.owner, self.attribute, self.make(sound))
        try:
            yield
        finally:
            setattr(self.owner, self.attribute, sound)


def _ack_before_fsync(sound: Any) -> Any:
    def flush(self: Partition) -> str | None:
        why: str | None = sound(self)
        if self.name == "metadata":
            return why
        for _, waiter in self._waiting:
            waiter.done(ErrorCode.NONE)
        self._waiting.clear()
        return why

    return flush


def _no_folder_sync(sound: Any) -> Any:
    return lambda self: SyncTargets(sound(self).files, [])


def _sync_retried(sound: Any) -> Any:
    def on_synced(self: Node, event: Synced, now_ms: int) -> None:
        partition = self._syncs._jobs.get(event.job)
        if event.error is None or not isinstance(partition, Partition) or not partition.log.is_syncing:
            sound(self, event, now_ms)
            return
        log = partition.log
        del self._syncs._jobs[event.job]
        log._syncing = None
        log._dirty = [
            segment.file for segment in log.segments if segment.base_offset >= log.durable.segment.base_offset
        ]
        self._effects.append(self._syncs.start(partition))

    return on_synced


def _sync_failure_ignored(sound: Any) -> Any:
    return lambda self, event, now_ms: sound(self, Synced(event.job, None), now_ms)


def _cut_at_first_damage(sound: Any) -> Any:
    def scan_start(segments: Any, witness: Any) -> Any:
        start = sound(segments, witness)
        return start._replace(segment=0, position=0, offset=segments[0].base_offset, proven=True, acknowledged=0)

    return scan_start


def _state_before_write(sound: Any) -> Any:
    def admit(self: ProducerTable, *batch: int) -> None:
        sound(self, *batch)
        self.commit()

    return admit


def _undurable_is_visible(sound: Any) -> Any:
    def flush(self: Log) -> None:
        sound(self)
        if self.written.offset > self.visible.offset:
            self._show(self.written)

    return flush


def _witness_too_far(sound: Any) -> Any:
    def write_witness(self: Log, reserved: int) -> None:
        durable, self.durable = self.durable, self.written
        try:
            sound(self, reserved)
        finally:
            self.durable = durable

    return write_witness


def _start_not_proven(sound: Any) -> Any:
    def prove_start(self: Log) -> None:
        """The witness is synced with the first group, as are the records."""

    return prove_start


def _other_slot(last: int, *kept: int) -> int:
    """Whether a sync of it has ended well is not asked."""
    return last + 1


def _metadata_before_durable(sound: Any) -> Any:
    def append(self: MetaLog, changes: Any, now_ms: int) -> None:
        sound(self, changes, now_ms)
        for change in changes:
            self._catalog.replay_(change)

    return append


def _torn_tail_kept(sound: Any) -> Any:
    return lambda disk, folder, segment, position: None


def _zeros_left_behind(sound: Any) -> Any:
    def trim(self: Segment) -> None:
        pass

    return trim


def _repeats_forgotten(sound: Any) -> Any:
    def check(self: ProducerTable, *batch: int) -> Any:
        found = sound(self, *batch)
        return None if isinstance(found, producers.Sent) else found

    return check


def _ids_given_again(sound: Any) -> Any:
    def start(self: ProducerIds, *parts: Any) -> None:
        sound(self, *parts)
        self._next = 0

    return start


def _memory_offsets_reused(sound: Any) -> Any:
    return lambda self, now_ms: None


def _start_forgotten(sound: Any) -> Any:
    def get(self: store.Store, topic: Any, index: int, now_ms: int) -> Any:
        starts, topic.starts = topic.starts, {}
        try:
            return sound(self, topic, index, now_ms)
        finally:
            topic.starts = starts

    return get


def _fetch_not_woken(sound: Any) -> Any:
    return lambda *_: None


def _held_bytes_leak(sound: Any) -> Any:
    def on_gone_client(self: Node, number: int) -> None:
        held = self.room.held_bytes
        sound(self, number)
        self.room.held_bytes = held

    return on_gone_client


def _answers_overtake(sound: Any) -> Any:
    def answer(self: Replies, slot: Any, reply: Any) -> None:
        if slot in slot.connection.slots:
            slot.connection.slots.remove(slot)
            slot.connection.slots.appendleft(slot)
        sound(self, slot, reply)

    return answer


def _never_resumed(sound: Any) -> Any:
    return lambda self, now_ms: None


def _checksum_not_checked(sound: Any) -> Any:
    class Whatever:
        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 0

    return lambda data: Whatever()


def _last_change_lost(sound: Any) -> Any:
    return lambda log, name: list(sound(log, name))[: -1 if log.next_offset > 3 else None]


PLANTS: dict[str, Plant] = {
    plant.name: plant
    for plant in (
        Plant("ack-before-fsync", Partition, "flush", _ack_before_fsync, ("acked-is-durable", "history-is-valid")),
        Plant("no-directory-fsync", Log, "begin_sync", _no_folder_sync, ("acked-is-durable",)),
        Plant("eio-retried", Node, "_on_synced", _sync_retried, ("failed-sync-is-final",)),
        Plant("eio-ignored", Node, "_on_synced", _sync_failure_ignored, ("no-ack-after-failed-sync",)),
        Plant(
            "four-remembered", producers, "REMEMBERED", lambda five: five - 1,
            ("producers-equal-replay", "repeat-is-recognised"),
        ),
        Plant(
            "truncation-at-first-bad-crc", recovery, "_scan_start", _cut_at_first_damage,
            ("nothing-behind-damage-is-lost",),
        ),
        Plant("state-before-failed-write", ProducerTable, "admit", _state_before_write, ("producers-equal-replay",)),
        Plant(
            "undurable-is-visible", Log, "flush", _undurable_is_visible,
            ("visible-is-durable", "end-never-goes-back"),
        ),
        Plant("witness-too-far", Log, "_write_witness", _witness_too_far, ("witness-is-sound",)),
        Plant(
            "records-before-witness", Log, "_prove_start", _start_not_proven,
            ("no-false-damage", "visible-is-durable"),
        ),
        Plant("witness-written-over", witness_file, "next_generation", lambda _: _other_slot, ("witness-remains",)),
        Plant("metadata-before-durable", MetaLog, "_append", _metadata_before_durable, ("catalog-equals-replay",)),
        Plant("torn-tail-kept", recovery, "_cut", _torn_tail_kept, ("no-false-damage",)),
        Plant("zeros-left-behind", Segment, "trim", _zeros_left_behind, ("no-false-damage",)),
        Plant("repeats-forgotten", ProducerTable, "check", _repeats_forgotten, ("producer-repeat-stored-once",)),
        Plant("ids-given-again", ProducerIds, "__init__", _ids_given_again, ("producer-ids-are-unique",)),
        Plant("memory-offsets-reused", Log, "fill_reserved", _memory_offsets_reused, ("offsets-never-change",)),
        Plant("start-forgotten", store.Store, "get", _start_forgotten, ("deleted-stays-deleted",)),
        Plant("fetch-not-woken", node, "on_visible", _fetch_not_woken, ("waiting-fetch-is-answered",)),
        Plant("held-bytes-leak", Node, "_on_gone_client", _held_bytes_leak, ("bounded-memory",)),
        Plant("answers-overtake", Replies, "answer", _answers_overtake, ("replies-in-order",)),
        Plant("never-resumed", Node, "_resume_some", _never_resumed, ("calm-finishes",)),
        Plant("checksum-not-checked", reading, "crc32c", _checksum_not_checked, ("damage-is-never-served",)),
        Plant(
            "committed-before-durable", TableLog, "_append", group_plants.committed_before_durable,
            ("positions-never-go-back",),
        ),
        Plant(
            "true-before-durable", TableLog, "_append", group_plants.true_before_durable,
            ("groups-equal-replay", "transactions-equal-replay"),
        ),
        Plant(
            "snapshot-without-positions", GroupTable, "snapshot", group_plants.snapshot_without_positions,
            ("positions-never-go-back",),
        ),
        Plant("fenced-may-commit", Group, "refuse_commit", group_plants.fenced_may_commit, ("nobody-fenced-commits",)),
        Plant(
            "generation-used-twice", Group, "begin_generation", group_plants.generation_used_twice,
            ("one-owner-in-a-generation",),
        ),
        Plant(
            "taken-before-given-back", heartbeat, "plan_next", group_plants.taken_before_given_back,
            ("one-owner-at-a-time",),
        ),
        Plant(
            "joins-wait-for-ever", rebalance, "_wait_for_joins", group_plants.joins_wait_for_ever,
            ("join-is-answered",),
        ),
        Plant(
            "markers-before-decision", Coordinator, "_decide", transaction_plants.markers_before_decision,
            ("commits-are-decided-first",),
        ),
        Plant("ends-differ", ending, "end_in", transaction_plants.ends_differ, ("transactions-are-whole",)),
        Plant("end-forgotten", Coordinator, "_on_alarm", transaction_plants.end_forgotten, ("calm-finishes",)),
        Plant("stable-end-too-far", Log, "settle", transaction_plants.stable_end_too_far, ("stable-end-is-sound",)),
        Plant(
            "aborted-not-told", fetch, "aborted_between", transaction_plants.aborted_not_told,
            ("only-committed-is-seen",),
        ),
        Plant("fenced-may-write", Coordinator, "refuse", transaction_plants.fenced_may_write, ("fenced-cannot-write",)),
        Plant(
            "positions-at-once", GroupCoordinator, "hold", transaction_plants.positions_at_once,
            ("positions-come-with-commits",),
        ),
        Plant("loads-without-limit", Loads, "take", load_plants.loads_without_limit, ("loads-are-bounded",)),
        Plant("gone-still-wait", Loads, "forget", load_plants.nothing_forgotten, ("nobody-gone-waits",)),
        Plant(
            "load-end-missed", node, "on_loaded", load_plants.end_missed,
            ("waiting-fetch-is-answered", "calm-finishes"),
        ),
        Plant(
            "wait-begins-anew", fetch, "_answer_or_wait", load_plants.waits_begin_anew,
            ("waiting-fetch-is-answered",),
        ),
        Plant(
            "as-before-the-load", fetch, "_plan", load_plants.as_before_the_load,
            ("end-never-goes-back", "deleted-stays-deleted"),
        ),
        Plant(
            "old-read-in-the-step", fetch, "_share", load_plants.read_in_the_step,
            ("steps-do-not-wait-for-the-disk",),
        ),
        Plant(
            "next-segment-in-the-step", fetch, "begin_of", load_plants.segments_end_unseen,
            ("steps-do-not-wait-for-the-disk",),
        ),
        Plant("all-is-loaded", fetch, "_share", load_plants.all_is_loaded, ("only-absent-is-loaded",)),
        Plant("resumed-once", Node, "_resume_some", load_plants.resumed_once, ("bounded-memory",)),
        Plant("held-back-uncounted", MemoryBudget, "hold_back", load_plants.held_back_uncounted, ("bounded-memory",)),
        Plant("cut-unseen", fetch, "Collected", load_plants.cut_unseen, ("waiting-fetch-is-answered",)),
        Plant(
            "last-change-lost", metalog, "read_values", _last_change_lost,
            ("catalog-equals-replay", "topics-survive"),
        ),
    )
}  # fmt: skip

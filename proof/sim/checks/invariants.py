"""What must hold after every simulated event. One function each; a sentence says what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.kafka.records.record import decode_records
from penstock.kafka.wire.messages.fetch import FetchRequest
from penstock.queue.core.catalog import Catalog
from penstock.queue.core.catalog_changes import Change, decode_change
from penstock.queue.core.partition import Partition
from penstock.queue.log.layout import GROUPS_FOLDER, META_FOLDER, TRANSACTIONS_FOLDER
from penstock.queue.log.point import Point
from penstock.queue.log.producers import Sent
from proof.sim.checks.groups import (
    groups_equal_replay,
    join_is_answered,
    one_owner_at_a_time,
    positions_never_go_back,
)
from proof.sim.checks.loads import (
    loads_are_bounded,
    nobody_gone_waits,
    only_absent_is_loaded,
    steps_do_not_wait_for_the_disk,
    waits_for_the_disk,
)
from proof.sim.checks.transactions import (
    commits_are_decided_first,
    positions_come_with_commits,
    stable_end_is_sound,
    transactions_equal_replay,
)
from proof.sim.disk_image import Batches, raw_batch

if TYPE_CHECKING:
    from penstock.queue.node import Node
    from proof.sim.promises import Account
    from proof.sim.world_view import WorldView

Check = Callable[["WorldView"], str | None]
ROOMY_BYTES = 10**6
REMEMBERED = 5  # the promise, whatever the code says


def acked_is_durable(world: WorldView) -> str | None:
    """An acknowledged batch is on the durable part of the disk, at its offset, unless it was removed on purpose."""
    for account in world.ledger.accounts.values():
        if account.topic.in_memory or account.topic.is_going or account.damaged or not account.acked:
            continue
        durable = world.imager.durable(account.folder)
        first = min(durable, default=None)
        for base, promise in account.acked.items():
            stored = durable.get(base)
            if stored is not None and stored.payload == promise.payload:
                continue
            if stored is None and (first is None or base < first) and account.may_be_gone(promise, world.now_ms):
                continue
            return f"{account.name}: offset {base} was acknowledged and is not durable"
    return None


def producer_repeat_stored_once(world: WorldView) -> str | None:
    """A batch of an idempotent producer stands in a log once, however often it was sent."""
    for account in _changed(world, "once"):
        seen: dict[tuple[int, int, int], int] = {}
        for base, stored in world.imager.written(account.folder).items():
            header = stored.header
            who = (header.producer_id, header.producer_epoch, header.base_sequence)
            if header.producer_id >= 0 and not header.is_control and seen.setdefault(who, base) != base:
                return f"{account.name}: sequence {who[2]} of producer {who[0]} stands at {seen[who]} and {base}"
    return None


def witness_is_sound(world: WorldView) -> str | None:
    """The witness never claims more than a power cut would leave."""
    folders = [a.folder for a in world.ledger.accounts.values() if not a.topic.is_going and not a.damaged]
    for folder in [*folders, META_FOLDER, GROUPS_FOLDER, TRANSACTIONS_FOLDER]:
        witness = world.imager.witness(folder)
        if witness is not None and witness.offset > world.imager.durable_end(folder):
            end = world.imager.durable_end(folder)
            return f"{folder}: the witness says {witness.offset}, durable is {end}"
    return None


def witness_remains(world: WorldView) -> str | None:
    """Where a durable point was durable once, a power cut at any moment leaves one."""
    folders = {a.folder for a in world.ledger.accounts.values() if not a.topic.is_going}
    had: dict[str, None] = world.remembered.setdefault("witnessed", {})
    for folder in [*sorted(folders), META_FOLDER, GROUPS_FOLDER, TRANSACTIONS_FOLDER]:
        if world.imager.has_certain_witness(folder):
            had[folder] = None
        elif folder in had:
            return f"{folder}: a power cut could leave no witness"
    return None


def failed_sync_is_final(world: WorldView) -> str | None:
    """A file whose sync failed is never synced again by the same process."""
    if world.disk.retried:
        return f"{world.disk.retried[0]} was synced again after a failed sync"
    return None


def catalog_equals_replay(world: WorldView) -> str | None:
    """The catalog is what the durable metadata log says, no more and no less."""
    node = world.node
    if node is None or node.meta.partition.log.stopped is not None:
        return None
    log = node.meta.partition.log
    end = log.visible.offset
    if world.imager.durable_end(META_FOLDER) < end:
        return f"the metadata log shows offset {end}, durable is {world.imager.durable_end(META_FOLDER)}"
    durable = world.imager.durable(META_FOLDER)
    known = world.remembered.get("catalog")
    if known is None or known[0] is not durable or known[1] != end or known[2] != log.start_offset:
        rebuilt = Catalog()
        for change in _changes(durable, log.start_offset, end):
            rebuilt.replay_(change)
        known = world.remembered["catalog"] = (durable, end, log.start_offset, list(rebuilt.snapshot()))
    if list(node.catalog.snapshot()) != known[3]:
        return f"the catalog is not what the metadata log says up to offset {end}"
    return None


def producers_equal_replay(world: WorldView) -> str | None:
    """What a log remembers of producers is what its batches say."""
    node = world.node
    if node is None:
        return None
    for account in _changed(world, "producers"):
        partition = node.store.open.get((account.topic.topic_id.bytes, account.index))
        if partition is None or partition.log.stopped is not None or account.damaged:
            continue
        rebuilt = _rebuild(world.imager.written(account.folder))
        start = partition.log.segments[0].base_offset
        known = {
            pid: tuple(sent for sent in producer.batches if sent.base_offset >= start)
            for pid, producer in partition.log.producers.known.items()
        }
        known = {pid: batches for pid, batches in known.items() if batches}
        if known != rebuilt:
            return f"{account.name}: producers {known} are remembered, the log says {rebuilt}"
    return None


def topics_survive(world: WorldView) -> str | None:
    """A topic whose creation was acknowledged is there until its deletion is asked for; a deleted one is not."""
    node = world.node
    if node is None:
        return None
    for topic in world.ledger.topics.values():
        found = node.catalog.by_id(topic.topic_id)
        if not topic.is_going and (found is None or found.partitions != topic.partitions):
            return f"topic {topic.name} was created and is missing"
        if topic.is_gone and found is not None:
            return f"topic {topic.name} was deleted and is back"
    return None


def bounded_memory(world: WorldView) -> str | None:
    """What is held for clients is counted right, and no client is read from beyond its limit."""
    node = world.node
    if node is None:
        return None
    held = sum(connection.held_bytes for connection in node.connections.values())
    if held != node.room.held_bytes:
        return f"{node.room.held_bytes} bytes are counted as held, connections hold {held}"
    for connection in node.connections.values():
        for slot in connection.slots:
            reply = slot.reply or b""
            if slot.held_bytes < len(reply if isinstance(reply, bytes) else b"".join(reply)):
                return f"connection {connection.number} holds a reply that is not counted"
        real = sum(slot.held_bytes for slot in connection.slots) + connection.unsent_bytes
        if real != connection.held_bytes:
            return f"connection {connection.number} holds {real} bytes, counted are {connection.held_bytes}"
        if connection.backlog and not connection.is_paused:
            return f"connection {connection.number} has a backlog and is still read from"
        if connection.is_paused and node.room.may_go_on(connection):
            return f"connection {connection.number} is paused, and nothing holds it back"
    return None


def waiting_fetch_is_answered(world: WorldView) -> str | None:
    """A fetch waits neither beyond its time nor beside records that it could have."""
    node = world.node
    if node is None:
        return None
    for link in world.links.values():
        if not link.unanswered or link.is_closing or link.number not in node.connections:
            continue
        asked = link.unanswered[0]
        request = asked.request
        connection = node.connections[link.number]
        if not isinstance(request, FetchRequest) or connection.backlog or waits_for_the_disk(node, connection):
            continue
        if world.now_ms >= asked.waits_from_ms + request.max_wait_ms:
            return f"{link.client.name} waits since {asked.waits_from_ms} for {request.max_wait_ms} ms"
        # Where clients may hold little in all, a fetch is put off while they hold it.
        is_roomy = world.profile.config.inflight_bytes_max >= ROOMY_BYTES
        if is_roomy and (name := _visible_for(node, world, request)):
            return f"{link.client.name} waits, although {name} has records for it"
    return None


def repeat_is_recognised(world: WorldView) -> str | None:
    """The oldest unacknowledged batch of a producer that sends in order is never refused."""
    for producer in world.producers:
        for lane, what in producer.refused:
            account = world.ledger.account(lane.topic, lane.index)
            # A partition that could not even be opened cannot remember what it missed.
            excused = lane.topic.is_going or lane.topic.in_memory or account.name in world.unopened
            if not (excused or account.is_trimmed or account.damaged):
                return f"{what} from {account.name}"
        producer.refused.clear()
    return None


AFTER_STEP: dict[str, Check] = {
    "acked-is-durable": acked_is_durable,
    "producer-repeat-stored-once": producer_repeat_stored_once,
    "witness-is-sound": witness_is_sound,
    "witness-remains": witness_remains,
    "failed-sync-is-final": failed_sync_is_final,
    "catalog-equals-replay": catalog_equals_replay,
    "producers-equal-replay": producers_equal_replay,
    "topics-survive": topics_survive,
    "bounded-memory": bounded_memory,
    "waiting-fetch-is-answered": waiting_fetch_is_answered,
    "repeat-is-recognised": repeat_is_recognised,
    "groups-equal-replay": groups_equal_replay,
    "positions-never-go-back": positions_never_go_back,
    "join-is-answered": join_is_answered,
    "one-owner-at-a-time": one_owner_at_a_time,
    "transactions-equal-replay": transactions_equal_replay,
    "stable-end-is-sound": stable_end_is_sound,
    "positions-come-with-commits": positions_come_with_commits,
    "commits-are-decided-first": commits_are_decided_first,
    "loads-are-bounded": loads_are_bounded,
    "nobody-gone-waits": nobody_gone_waits,
    "only-absent-is-loaded": only_absent_is_loaded,
    "steps-do-not-wait-for-the-disk": steps_do_not_wait_for_the_disk,
}


def _changed(world: WorldView, who: str) -> list[Account]:
    """Partitions whose written batches differ from when this check last looked."""
    changed = []
    for key, account in world.ledger.accounts.items():
        written = world.imager.written(account.folder)
        if account.topic.is_going or world.remembered.get((who, key)) is written:
            continue
        world.remembered[who, key] = written
        changed.append(account)
    return changed


def _changes(batches: Batches, start: int, end: int) -> list[Change]:
    found = []
    for base in sorted(batches):
        if start <= base < end:
            found += [decode_change(record.value or b"") for record in decode_records(raw_batch(batches[base]))]
    return found


def _rebuild(batches: Batches) -> dict[int, tuple[Sent, ...]]:
    rebuilt: dict[int, tuple[Sent, ...]] = {}
    epochs: dict[int, int] = {}
    for base in sorted(batches):
        header = batches[base].header
        pid = header.producer_id
        if header.is_control:
            if epochs.get(pid) != header.producer_epoch:
                rebuilt.pop(pid, None)
                epochs[pid] = header.producer_epoch
        elif pid >= 0:
            last = header.base_sequence + header.record_count - 1
            sent = Sent(header.base_sequence, last, base, header.next_offset)
            earlier = rebuilt.get(pid, ()) if epochs.get(pid) == header.producer_epoch else ()
            rebuilt[pid] = (*earlier, sent)[-REMEMBERED:]
            epochs[pid] = header.producer_epoch
    return rebuilt


def _end(partition: Partition, request: FetchRequest) -> Point:
    return partition.log.stable if request.isolation_level else partition.log.visible


def _visible_for(node: Node, world: WorldView, request: FetchRequest) -> str | None:
    """Where there are records enough for a fetch."""
    found = 0
    for wanted in request.topics:
        topic = world.ledger.topic(wanted.topic, wanted.topic_id)
        for part in wanted.partitions:
            key = (topic.topic_id.bytes, part.partition) if topic else (b"", -1)
            partition: Partition | None = node.store.open.get(key)
            # What was removed while a transaction held the reader back is told when the wait is over.
            if partition is None or part.fetch_offset < partition.log.start_offset:
                continue
            end = _end(partition, request).offset
            if end > part.fetch_offset:
                batches = world.imager.written(partition.log.folder)
                sizes = {base: stored.header.size for base, stored in batches.items() if base < end}
                found += sum(
                    size for base, size in sizes.items() if batches[base].header.next_offset > part.fetch_offset
                )
                if found >= request.min_bytes or request.min_bytes <= 1:
                    return partition.name
    return None

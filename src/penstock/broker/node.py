"""One queue node: events in, effects out; no clock, no sockets, no files of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from uuid import UUID

from penstock.broker.api import COLD, HOT
from penstock.broker.api_versions import refuse_api_versions
from penstock.broker.call import Call
from penstock.broker.catalog import Catalog, Topic
from penstock.broker.changes import Change, TopicDeleted
from penstock.broker.connection import Connection, Slot
from penstock.broker.counters import Counters
from penstock.broker.events import (
    Close,
    Connected,
    Drained,
    Effect,
    Event,
    Loaded,
    Note,
    Opened,
    Pause,
    Received,
    Reply,
    Resume,
    Synced,
)
from penstock.broker.fetch import WaitingFetch, finish, forget_all, on_loaded, on_visible
from penstock.broker.groups.coordinator import Coordinator
from penstock.broker.groups.journal import open_group_journal
from penstock.broker.loads import Loads
from penstock.broker.metalog import Finish, Plan, open_metalog
from penstock.broker.openings import Openings
from penstock.broker.partition import Partition
from penstock.broker.produce import on_opened
from penstock.broker.room import REPLY_BYTES_UNHELD, Room
from penstock.broker.shaped_produce import produce_shaped
from penstock.broker.store import Store
from penstock.broker.syncs import Syncs
from penstock.broker.timers import Timers
from penstock.broker.transactions.coordinator import open_transactions
from penstock.broker.transactions.found import agree_on
from penstock.config import BrokerConfig, clipped
from penstock.errors import ErrorCode, PeerError, StorageError, invariant
from penstock.log.scan import Damage
from penstock.ports import Buffer, Disk
from penstock.wire.apis import APIS, ApiKey
from penstock.wire.header import RequestHeader, decode_request_header
from penstock.wire.message import decode_request

TRIM_PAUSE_MS = 100


class Node:
    """The state of a queue node. `step` is the only way in, `next_deadline_ms` says when to call it again."""

    def __init__(
        self, disk: Disk, config: BrokerConfig, address: tuple[str, int], new_id: Callable[[], UUID], now_ms: int
    ) -> None:
        self.config = config
        self.address = address
        self.new_id = new_id
        self.catalog = Catalog()
        self.counters = Counters()
        self.store = Store(disk, config, self.catalog)
        self.meta = open_metalog(disk, config, self.store, self.catalog, new_id().hex[:22], now_ms)
        self.meta.on_gone = self._on_gone
        self.meta.on_changed = self._on_changed
        journal = open_group_journal(disk, config, now_ms)
        self.groups = Coordinator(journal, config, self.catalog, new_id, now_ms)
        self.groups.on_full = self._on_groups_full
        self.dirty: dict[Partition, None] = {}
        self.next_producer_id = self.catalog.producer_ids_below
        self.transactions = open_transactions(self, disk, now_ms)
        for own in (journal, self.transactions.journal):
            own.on_dirty = self._on_dirty
            own.on_compacted = self.store.advance
        self.connections: dict[int, Connection] = {}
        self._effects: list[Effect] = []
        self._outbox: dict[Connection, list[Buffer]] = {}
        self._timers = Timers()
        self.loads = Loads(config.loads_max)
        self.openings = Openings(config)
        self._syncs = Syncs(config.checkpoint_ms)
        self._retention_at_ms = now_ms + config.retention_check_ms
        self.room = Room(config)
        self.store.on_opened = self._on_opened
        self.store.on_trouble = self._on_trouble
        for name in self.store.remove_orphans():
            self.note("warning", "unknown topic folder", folder=name, hint="it holds records; nothing was removed")

    def step(self, events: Iterable[Event], now_ms: int) -> list[Effect]:
        """Take in all that happened since the last step; say what to do. Frames may be reused afterwards."""
        effects: list[Effect] = self._effects
        for event in events:
            if isinstance(event, Received):
                self._on_frame(event, now_ms)
            elif isinstance(event, Synced):
                self._on_synced(event, now_ms)
            elif isinstance(event, Loaded):
                on_loaded(self, event.job, now_ms)
            elif isinstance(event, Opened):
                on_opened(self, event, now_ms)
            elif isinstance(event, Drained):
                if (connection := self.connections.get(event.connection)) is not None:
                    self.room.drained(connection)
            elif isinstance(event, Connected):
                self.connections[event.connection] = Connection(event.connection, event.peer)
                self.counters.connections += 1
            else:
                self._on_gone_client(event.connection)
        self._on_time(now_ms)
        self._settle(now_ms)
        while self.room.paused and self._resume_some(now_ms):
            self._settle(now_ms)
        for connection, chunks in self._outbox.items():
            if chunks and not connection.is_closed:
                effects.append(Reply(connection.number, chunks, connection.unsent_bytes > 0))
        effects += self.loads.take()
        effects += self.openings.take()
        self._outbox.clear()
        self._effects = []
        return effects

    @property
    def next_deadline_ms(self) -> int:
        """When something happens by itself."""
        deadline = self._retention_at_ms
        if (waiting_ms := self._timers.next_ms) is not None:
            deadline = min(deadline, waiting_ms)
        for coordinator in (self.groups, self.transactions):
            if (due_ms := coordinator.next_deadline_ms) is not None:
                deadline = min(deadline, due_ms)
        if (checkpoint_ms := self._syncs.checkpoint_at_ms) is not None:
            deadline = min(deadline, checkpoint_ms)
        return deadline

    def _on_frame(self, event: Received, now_ms: int) -> None:
        connection = self.connections.get(event.connection)
        if connection is None or connection.is_closed:
            return
        frame = event.frame
        if connection.backlog or (connection.held_bytes and not self.room.may_take(connection, frame)):
            connection.backlog.append(memoryview(bytearray(frame)))
            self._pause(connection)
            return
        if connection.shapes is None or not produce_shaped(self, connection, connection.shapes, frame, now_ms):
            self._handle(connection, frame, now_ms)

    def _handle(self, connection: Connection, frame: memoryview, now_ms: int) -> None:
        try:
            header = decode_request_header(frame)
            api = APIS[header.api_key]
            size = len(frame)
            slot = Slot(connection, size)
            self.enter(slot)
            self.counters.requests[header.api_key] += 1
            if size > self.config.request_bytes_max and header.api_key != ApiKey.PRODUCE:
                raise PeerError(f"{api.name} with {size} bytes is larger than any that makes sense")
            if not api.min_version <= header.api_version <= api.max_version:
                self._refuse_version(slot, header, now_ms)
                return
            hot = HOT.get(header.api_key)
            if hot is not None:
                hot(self, slot, header, frame, now_ms)
            else:
                request = decode_request(api.request, frame, header.api_version, header.size)
                COLD[header.api_key](Call(self, slot, header, now_ms), request)
        except PeerError as error:
            self.close(connection, "protocol", str(error))

    def _refuse_version(self, slot: Slot, header: RequestHeader, now_ms: int) -> None:
        if header.api_key != ApiKey.API_VERSIONS:
            name = APIS[header.api_key].name
            raise PeerError(f"{name} version {header.api_version} is not supported")
        refuse_api_versions(Call(self, slot, header, now_ms))

    def enter(self, slot: Slot) -> None:
        """A request takes its place in the order of its connection."""
        connection = slot.connection
        connection.slots.append(slot)
        self.room.take(connection, slot.held_bytes)

    def answer(self, slot: Slot, reply: bytes | list[Buffer]) -> None:
        """Answer a request; it leaves when all before it on its connection have been answered."""
        slot.reply = reply
        connection = slot.connection
        slots = connection.slots
        if slots and slots[0].reply is None:
            self.room.hold_back(slot, reply)
            return
        out = self._outbox.get(connection)
        if out is None:
            out = self._outbox[connection] = []
        freed = size = 0
        while slots and (ready := slots[0].reply) is not None:
            freed += slots.popleft().held_bytes
            if type(ready) is bytes:
                out.append(ready)
                size += len(ready)
            else:
                out += ready  # type: ignore[arg-type]  # a list of chunks, if it is not bytes
                size += sum(map(len, ready))  # type: ignore[arg-type]
        room = self.room
        room.held_bytes -= freed
        connection.held_bytes -= freed
        connection.replied_bytes += size
        if connection.replied_bytes >= REPLY_BYTES_UNHELD:
            room.hold_replies(connection)

    def change(self, call: Call, plan: Plan, finish: Finish) -> None:
        """Make a durable change of the catalog: plan it when it is its turn, answer when it is true."""
        if not self.meta.submit(plan, finish, call.now_ms):
            self.close(call.slot.connection, "limit", "too many changes of topics are waiting (metadata_queue_max)")
        self.dirty[self.meta.partition] = None

    def partition(self, topic: Topic, index: int, now_ms: int) -> Partition | ErrorCode:
        """The partition to work on, or the code that says why there is none."""
        found = self.store.open.get((topic.raw_id, index))
        if found is not None:
            return found
        opened = self.store.get(topic, index, now_ms)
        return opened if isinstance(opened, Partition) else self.store.error_code(opened)

    def _on_dirty(self, partition: Partition) -> None:
        self.dirty[partition] = None

    def _on_changed(self, change: Change) -> None:
        if isinstance(change, TopicDeleted):
            self.groups.on_topic_deleted()

    def _on_opened(self, partition: Partition, topic: Topic, index: int, now_ms: int) -> None:
        agree_on(self, partition, (topic.topic_id, index), now_ms)
        if partition.log.torn:
            self.note("warning", "torn tail set aside", partition=partition.name, files=partition.log.torn)
        for segment in partition.log.segments:
            for damage in segment.damages:
                self.on_damage(partition, damage)

    def _on_trouble(self, event: str, name: str, reason: str) -> None:
        self.note("error", event, partition=name, reason=reason)

    def _settle(self, now_ms: int) -> None:
        """Write every group staged in this step, and start the syncs that acknowledge them."""
        for _ in range(100_000):
            if not self.dirty and not self.meta.wants_to_run:
                return
            if self.meta.wants_to_run:
                self.meta.run(now_ms)
                self.dirty[self.meta.partition] = None
            dirty, self.dirty = self.dirty, {}
            for partition in dirty:
                self._flush(partition, now_ms)
        invariant(False, "a step comes to an end")

    def _flush(self, partition: Partition, now_ms: int) -> None:
        log = partition.log
        if (why := partition.flush()) is not None:
            self.on_write_failed(partition, why)
        if not partition.is_own:
            self.counters.produced(*partition.take_written())
        # Some may have become visible before this flush: a full segment is written while the group is being staged.
        if log.visible is not partition.announced:
            if log.stopped is None:  # a topic deleted in this step has no witness any more
                self._syncs.unwitness(partition, now_ms)
            on_visible(self, partition, partition.announce(), now_ms)
        if log.needs_sync and not log.config.in_memory:
            self._effects.append(self._syncs.start(partition))

    def _on_synced(self, event: Synced, now_ms: int) -> None:
        partition = self._syncs.end(event.job)
        if isinstance(partition, list):
            self._syncs.on_witnessed(partition, event.error is None, now_ms)
            if event.error is not None:
                self.counters.sync_failures += 1
                self.note("error", "a durable point could not be synced", reason=event.error)
            return
        if not partition.log.is_syncing:
            return  # the topic was deleted meanwhile
        if event.error is not None:
            self.counters.sync_failures += 1
            self.note("error", "sync failed, partition stopped", partition=partition.name, reason=event.error)
            partition.on_sync_failed(f"a sync failed: {event.error}")
            return
        self.counters.syncs += 1
        log = partition.log
        partition.on_synced()
        self._syncs.unwitness(partition, now_ms)
        if log.visible is not partition.announced:
            on_visible(self, partition, partition.announce(), now_ms)
        if log.needs_sync and not log.config.in_memory:
            self._effects.append(self._syncs.start(partition))

    def wake_at(self, deadline_ms: int, waiting: WaitingFetch) -> None:
        self._timers.add(deadline_ms, waiting)

    def _on_time(self, now_ms: int) -> None:
        for waiting in self._timers.due(now_ms):
            finish(self, waiting, now_ms)
        self.groups.on_time(now_ms)
        self.transactions.on_time(now_ms)
        if (checkpoint_ms := self._syncs.checkpoint_at_ms) is not None and checkpoint_ms <= now_ms:
            self._effects += self._syncs.checkpoint()
        if self._retention_at_ms <= now_ms:
            is_done = self.store.trim(now_ms)
            self._retention_at_ms = now_ms + (self.config.retention_check_ms if is_done else TRIM_PAUSE_MS)

    @property
    def _partitions(self) -> list[Partition]:
        own = (self.meta, self.groups.journal, self.transactions.journal)
        return [*self.store.open.values(), *(log.partition for log in own)]

    @property
    def is_syncing(self) -> bool:
        return self._syncs.is_busy

    def sync_all(self) -> list[Effect]:
        """Before a clean stop: sync whatever is not durable yet, memory topics too."""
        self._effects += self._syncs.checkpoint()
        for partition in self._partitions:
            if partition.log.needs_sync:
                self._effects.append(self._syncs.start(partition))
        effects, self._effects = self._effects, []
        return effects

    def _pause(self, connection: Connection) -> None:
        if not connection.is_paused:
            connection.is_paused = True
            self.room.paused[connection] = None
            self.counters.pauses += 1
            self._effects.append(Pause(connection.number))

    def _resume_some(self, now_ms: int) -> bool:
        """Take up what paused clients had sent; read again from who has no backlog left. False if none can go on."""
        ready = [connection for connection in self.room.paused if self.room.may_go_on(connection)]
        for connection in ready:
            while connection.backlog and self.room.may_go_on(connection):
                self._handle(connection, connection.backlog.popleft(), now_ms)
            if not connection.backlog and self.room.may_go_on(connection):
                connection.is_paused = False
                del self.room.paused[connection]
                self._effects.append(Resume(connection.number))
        return bool(ready)

    def close(self, connection: Connection, kind: str, reason: str) -> None:
        """Stop talking to a client; the reason goes to the log."""
        if not connection.is_closed:
            connection.is_closed = True
            self.counters.closed_for(kind)
            chunks = self._outbox.pop(connection, None)
            if chunks:
                self._effects.append(Reply(connection.number, chunks, False))
            self._effects.append(Close(connection.number, reason))

    def _on_gone_client(self, number: int) -> None:
        connection = self.connections.pop(number, None)
        if connection is not None:
            connection.is_closed = True
            self.room.leave(connection)
            connection.slots.clear()
            connection.backlog.clear()
            forget_all(self, connection)
            self.openings.forget(connection)

    def note(self, level: str, event: str, **details: object) -> None:
        self._effects.append(Note(level, event, details))

    def on_write_failed(self, partition: Partition, reason: str) -> None:
        self.counters.write_failures += 1
        self.note("error", "write failed", partition=partition.name, reason=reason)

    def on_damage(self, partition: Partition, damage: Damage) -> None:
        self.counters.damaged_reads += 1
        if not partition.meet_damage(damage.offset):
            return
        where = {"offset": damage.offset, "next_offset": damage.next_offset}
        self.note("error", "damaged record", partition=partition.name, **where, reason=damage.reason)

    def _on_groups_full(self, group_id: str) -> None:
        self.note("warning", "group refused", group=clipped(group_id), reason="there are too many (groups_max)")

    @property
    def stopped(self) -> dict[str, str]:
        """Partitions that do not take writes any more, and why: health is red while there are any."""
        found = {p.name: p.log.stopped for p in self._partitions if p.log.stopped}
        return {**found, **self.store.failed}

    @property
    def damaged(self) -> dict[str, list[int]]:
        """Partitions in which damage was met since the start, and at which offsets: they go on, all else is read."""
        return {p.name: offsets for p in self._partitions if (offsets := p.damaged)}

    def _on_gone(self, partition: Partition) -> None:
        """The topic was deleted: nobody waits for it any longer."""
        partition.on_sync_failed("the topic was deleted")
        self._syncs.forget(partition, self._effects)
        for waiting in list(partition.fetches):
            waiting.missing = 0
            self.wake_at(0, waiting)

    def shut_down(self) -> list[Effect]:
        """Leave the disk so that the next start has nothing to scan; all syncs have ended."""
        for partition in self._partitions:
            try:
                partition.log.close()
            except (OSError, StorageError) as error:
                self.note("warning", "not closed cleanly", partition=partition.name, reason=str(error))
        effects, self._effects = self._effects, []
        return effects

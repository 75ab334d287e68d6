"""One queue node: events in, effects out; no clock, no sockets, no files of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final
from uuid import UUID

from penstock.config.broker import BrokerConfig
from penstock.errors import PeerError, StorageError, invariant
from penstock.kafka.wire.apis import APIS, ApiKey
from penstock.kafka.wire.header import RequestHeader, decode_request_header
from penstock.kafka.wire.message import decode_request
from penstock.ports import Disk
from penstock.queue.call import Call
from penstock.queue.core.batch_openings import Openings
from penstock.queue.core.catalog import Catalog, Topic
from penstock.queue.core.catalog_changes import Change, TopicDeleted
from penstock.queue.core.connection import Connection, Slot
from penstock.queue.core.counters import Counters
from penstock.queue.core.events import (
    Connected,
    Drained,
    Effect,
    Event,
    Loaded,
    Opened,
    Pause,
    Received,
    Resume,
    Synced,
)
from penstock.queue.core.host import Host
from penstock.queue.core.memory_budget import MemoryBudget
from penstock.queue.core.metadata_log import open_metalog
from penstock.queue.core.notes import Notes
from penstock.queue.core.partition import Partition
from penstock.queue.core.partitions import Store
from penstock.queue.core.replies import Replies
from penstock.queue.core.sync_jobs import SyncJobs
from penstock.queue.dispatch import HANDLERS
from penstock.queue.groups.coordinator import Coordinator
from penstock.queue.groups.table import open_group_journal
from penstock.queue.handlers.api_versions import refuse_api_versions
from penstock.queue.handlers.fetch import finish, handle_fetch, on_loaded, on_visible
from penstock.queue.handlers.produce import handle_produce, on_opened
from penstock.queue.handlers.produce_fast import produce_shaped
from penstock.queue.transactions.coordinator import open_transactions
from penstock.queue.transactions.recovery import agree_on

TRIM_PAUSE_MS = 100
_PRODUCE: Final = int(ApiKey.PRODUCE)
_FETCH: Final = int(ApiKey.FETCH)


class Node:
    """The state of a queue node. `step` is the only way in, `next_deadline_ms` says when to call it again."""

    def __init__(
        self,
        disk: Disk,
        config: BrokerConfig,
        address: tuple[str, int],
        new_id: Callable[[], UUID],
        now_ms: int,
        on_group_ended: Callable[[str], None] = lambda _: None,
    ) -> None:
        """The node calls `on_group_ended` with the id of each group that ends. A later group of this id is new."""
        self.config = config
        self.connections: dict[int, Connection] = {}
        self.catalog = Catalog()
        self.counters = Counters()
        self.room = MemoryBudget(config)
        self._effects: list[Effect] = []  # of this step
        self._notes = Notes(self._effects, self.counters)
        self._replies = Replies(self._effects, self.room, self.counters)
        self._syncs = SyncJobs(config.checkpoint_ms)
        self._dirty: dict[Partition, None] = {}
        self._retention_at_ms = now_ms + config.retention_check_ms
        self.store = Store(disk, config, self.catalog, self)
        cluster = new_id().hex[:22]
        self.meta = open_metalog(
            disk, config, self.store, self.catalog, cluster, now_ms, dirty=self._dirty, watcher=self
        )
        self.openings = Openings(config)
        self.host = Host(
            config=config,
            address=address,
            new_id=new_id,
            catalog=self.catalog,
            partitions=self.store,
            dirty=self._dirty,
            replies=self._replies,
            changes=self.meta,
            counters=self.counters,
            room=self.room,
            openings=self.openings,
            notes=self._notes,
        )
        self.loads = self.host.loads
        self._timers = self.host.timers
        journal = open_group_journal(disk, config, now_ms, dirty=self._dirty, advance=self.store.advance)
        self.groups = Coordinator(journal, config, self.catalog, new_id, self._notes, on_group_ended, now_ms)
        self.transactions = open_transactions(self.host, self.groups, disk, now_ms)
        for name in self.store.remove_orphans():
            hint = "it holds records; nothing was removed"
            self._notes.note("warning", "unknown topic folder", folder=name, hint=hint)

    def step(self, events: Iterable[Event], now_ms: int) -> list[Effect]:
        """Take in all that happened since the last step; say what to do. Frames may be reused afterwards."""
        effects: list[Effect] = self._effects
        for event in events:
            if isinstance(event, Received):
                self._on_frame(event, now_ms)
            elif isinstance(event, Synced):
                self._on_synced(event, now_ms)
            elif isinstance(event, Loaded):
                on_loaded(self.host, event.job, now_ms)
            elif isinstance(event, Opened):
                on_opened(self.host, self.transactions, event, now_ms)
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
        self._replies.send()
        effects += self.loads.take()
        effects += self.openings.take()
        return self._take_effects()

    def _take_effects(self) -> list[Effect]:
        """The parts of the node share the list, so that it is emptied and not replaced."""
        taken = self._effects[:]
        self._effects.clear()
        return taken

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
        if connection.shapes is None or not produce_shaped(self.host, connection, connection.shapes, frame, now_ms):
            self._handle(connection, frame, now_ms)

    def _handle(self, connection: Connection, frame: memoryview, now_ms: int) -> None:
        try:
            header = decode_request_header(frame)
            api = APIS[header.api_key]
            size = len(frame)
            slot = Slot(connection, size)
            self._replies.enter(slot)
            self.counters.requests[header.api_key] += 1
            if size > self.config.request_bytes_max and header.api_key != _PRODUCE:
                raise PeerError(f"{api.name} with {size} bytes is larger than any that makes sense")
            if not api.min_version <= header.api_version <= api.max_version:
                self._refuse_version(slot, header, now_ms)
                return
            if header.api_key == _PRODUCE:
                handle_produce(self.host, self.transactions, slot, header, frame, now_ms)
            elif header.api_key == _FETCH:
                handle_fetch(self.host, slot, header, frame, now_ms)
            else:
                request = decode_request(api.request, frame, header.api_version, header.size)
                HANDLERS[header.api_key](self._call(slot, header, now_ms), request)
        except PeerError as error:
            self._replies.close(connection, "protocol", str(error))

    def _refuse_version(self, slot: Slot, header: RequestHeader, now_ms: int) -> None:
        if header.api_key != ApiKey.API_VERSIONS:
            name = APIS[header.api_key].name
            raise PeerError(f"{name} version {header.api_version} is not supported")
        refuse_api_versions(self._call(slot, header, now_ms))

    def _call(self, slot: Slot, header: RequestHeader, now_ms: int) -> Call:
        return Call(self.host, self.groups, self.transactions, slot, header, now_ms)

    # What the metadata log and the partitions report.

    def on_changed(self, change: Change) -> None:
        if isinstance(change, TopicDeleted):
            self.groups.on_topic_deleted()

    def on_gone(self, partition: Partition) -> None:
        """The topic was deleted: every request that waits for it is answered."""
        partition.on_sync_failed("the topic was deleted")
        self._syncs.forget(partition, self._effects)
        for waiting in partition.fetches:
            waiting.on_deleted()

    def on_opened(self, partition: Partition, topic: Topic, index: int, now_ms: int) -> None:
        agree_on(self.host, self.transactions, partition, (topic.topic_id, index), now_ms)
        if partition.log.torn:
            self._notes.note("warning", "torn tail set aside", partition=partition.name, files=partition.log.torn)
        for segment in partition.log.segments:
            for damage in segment.damages:
                self._notes.damage(partition, damage)

    def on_storage_error(self, event: str, name: str, reason: str) -> None:
        self._notes.of_partition(event, name, reason)

    def _settle(self, now_ms: int) -> None:
        """Write every group staged in this step, and start the syncs that acknowledge them."""
        for _ in range(100_000):
            if not self._dirty and not self.meta.wants_to_run:
                return
            if self.meta.wants_to_run:
                self.meta.run(now_ms)
                self._dirty[self.meta.partition] = None
            dirty = list(self._dirty)
            self._dirty.clear()
            for partition in dirty:
                self._flush(partition, now_ms)
        invariant(False, "a step comes to an end")

    def _flush(self, partition: Partition, now_ms: int) -> None:
        log = partition.log
        if (why := partition.flush()) is not None:
            self._notes.write_failed(partition, why)
        if not partition.is_own:
            self.counters.produced(*partition.take_written())
        # Some may have become visible before this flush: a full segment is written while the group is being staged.
        if log.visible is not partition.announced:
            if log.stopped is None:  # a topic deleted in this step has no witness any more
                self._syncs.unwitness(partition, now_ms)
            on_visible(self.host, partition, partition.announce(), now_ms)
        if log.needs_sync and not log.config.in_memory:
            self._effects.append(self._syncs.start(partition))

    def _on_synced(self, event: Synced, now_ms: int) -> None:
        partition = self._syncs.end(event.job)
        if isinstance(partition, list):
            self._syncs.on_witnessed(partition, event.error is None, now_ms)
            if event.error is not None:
                self.counters.sync_failures += 1
                self._notes.note("error", "a durable point could not be synced", reason=event.error)
            return
        if not partition.log.is_syncing:
            return  # the topic was deleted meanwhile
        if event.error is not None:
            self.counters.sync_failures += 1
            self._notes.note("error", "sync failed, partition stopped", partition=partition.name, reason=event.error)
            partition.on_sync_failed(f"a sync failed: {event.error}")
            return
        self.counters.syncs += 1
        log = partition.log
        partition.on_synced()
        self._syncs.unwitness(partition, now_ms)
        if log.visible is not partition.announced:
            on_visible(self.host, partition, partition.announce(), now_ms)
        if log.needs_sync and not log.config.in_memory:
            self._effects.append(self._syncs.start(partition))

    def _on_time(self, now_ms: int) -> None:
        for waiting in self._timers.due(now_ms):
            finish(self.host, waiting, now_ms)
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
        return self._take_effects()

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

    def _on_gone_client(self, number: int) -> None:
        connection = self.connections.pop(number, None)
        if connection is not None:
            connection.is_closed = True
            self.room.leave(connection)
            connection.slots.clear()
            connection.backlog.clear()
            connection.abandon_requests()

    @property
    def stopped(self) -> dict[str, str]:
        """Partitions that do not take writes any more, and why: health is red while there are any."""
        found = {p.name: p.log.stopped for p in self._partitions if p.log.stopped}
        return {**found, **self.store.failed}

    @property
    def damaged(self) -> dict[str, list[int]]:
        """Partitions in which damage was met since the start, and at which offsets: they go on, all else is read."""
        return {p.name: offsets for p in self._partitions if (offsets := p.damaged)}

    def shut_down(self) -> list[Effect]:
        """Leave the disk so that the next start has nothing to scan; all syncs have ended."""
        for partition in self._partitions:
            try:
                partition.log.close()
            except (OSError, StorageError) as error:
                self._notes.note("warning", "not closed cleanly", partition=partition.name, reason=str(error))
        return self._take_effects()

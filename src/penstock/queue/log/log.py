"""One partition: appended in groups, durable after a sync, visible to readers only then."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from typing import NamedTuple

from penstock.config.broker import BrokerConfig
from penstock.config.topic import TopicConfig
from penstock.errors import StorageError, SyncFailedError, invariant
from penstock.kafka.records.batch import assign_offset, encode_filler
from penstock.ports import Disk, File
from penstock.queue.log.durable_point import SLOTS, DurablePoint
from penstock.queue.log.durable_point_file import DurablePointFile
from penstock.queue.log.layout import PRODUCERS, base_offsets, file_name
from penstock.queue.log.open_transactions import Transactions
from penstock.queue.log.point import Point
from penstock.queue.log.producer_snapshot import encode_snapshot
from penstock.queue.log.producers import ProducerTable
from penstock.queue.log.segment import Segment
from penstock.queue.log.small_file import save_file

SNAPSHOTS_KEPT = 2
BOUNDARIES_MAX = 256
_NEVER_MS = 2**62


class SyncTargets(NamedTuple):
    """What must reach the disk before a group may be acknowledged."""

    files: list[File]
    folders: list[str]


class Log:
    """The state of one partition. Built by recovery.open_log."""

    def __init__(
        self, disk: Disk, folder: str, config: TopicConfig, limits: BrokerConfig, segments: list[Segment]
    ) -> None:
        invariant(bool(segments), "a log has an active segment")
        self.config = config
        self.folder = folder
        self.disk = disk
        self.limits = limits
        self.segments = segments
        self.producers = ProducerTable(limits.producers_max)
        self.transactions = Transactions()
        self.start_offset = segments[0].base_offset
        self.stopped: str | None = None
        self.torn: list[str] = []
        self.active = segments[-1]
        self.next_offset = self.active.base_offset
        self.written = Point(self.next_offset, self.active, self.active.end)
        self.durable = self.written
        self.visible = self.written
        self.stable = self.written  # below it every transaction is decided, and readers can see how
        self.boundaries: dict[int, Point] = {}
        self.folder_dirty = False
        self.witness = DurablePointFile(disk, folder)
        self._is_start_proven = False  # a power cut leaves a witness
        self._proven_segment = -1  # where a witness points that is durable for certain
        self._dirty: list[File] = []
        self._syncing: Point | None = None
        self._staged: list[memoryview | bytearray] = []
        self._placed: list[tuple[int, int, int, int]] = []
        self.staged_bytes = 0
        self.bytes_written = 0
        self.batches_written = 0
        self._unsaved_bytes = 0
        self._segment_old_ms = _NEVER_MS

    def append(self, batch: memoryview | bytearray, last_delta: int, max_timestamp: int, now_ms: int) -> int:
        """Stage a checked batch and say its offset; `flush` writes it. May raise StorageError."""
        size = len(batch)
        filled = self.active.end + self.staged_bytes
        if filled and (filled + size > self.config.segment_bytes or now_ms > self._segment_old_ms):
            self.flush()
            self.roll()
        if self._segment_old_ms == _NEVER_MS:
            self._segment_old_ms = now_ms + self.config.segment_ms
        base = self.next_offset
        assign_offset(batch, base)
        self._staged.append(batch)
        self.next_offset = following = base + last_delta + 1
        self._placed.append((base, size, following, max_timestamp))
        self.staged_bytes += size
        return base

    @property
    def staged_batches(self) -> int:
        return len(self._staged)

    def flush(self) -> None:
        """Write what is staged with one call; on StorageError nothing of it happened."""
        if not self._staged:
            return
        active = self.active
        position = active.end
        try:
            if self.stopped is not None:
                raise StorageError(self.stopped)
            if self.config.in_memory and self.next_offset > self.witness.last.reserved:
                # Offsets below the reserve may be in use: promised durably before any of them is.
                self._prove_witness(self.next_offset + self.limits.memory_reserve)
            elif not self._is_start_proven:
                self._prove_start()
            active.write(self._staged, self.staged_bytes, is_synced=not self.config.in_memory)
        except OSError as error:
            self._take_back(f"writing {active.path} failed: {error}")
        except StorageError as failed:
            self._take_back(str(failed))
        position = active.index.extend(position, self._placed)
        self._unsaved_bytes += position - active.end
        self.bytes_written += position - active.end
        self.batches_written += len(self._placed)
        active.end = position
        self.written = Point(self.next_offset, active, position)
        self._clear_staged()
        self.producers.commit()
        if self.transactions.is_staged:
            active.index.aborted += self.transactions.commit()
        self._mark_dirty(active.file)
        if self.config.in_memory:
            self._show(self.written)

    def _mark_dirty(self, file: File) -> None:
        if not self._dirty or self._dirty[-1] is not file:
            self._dirty.append(file)

    @property
    def needs_sync(self) -> bool:
        return self._syncing is None and self.written.offset > self.durable.offset and self.stopped is None

    @property
    def is_syncing(self) -> bool:
        return self._syncing is not None

    def begin_sync(self) -> SyncTargets:
        """What to sync now; everything written so far is durable once that has ended well."""
        invariant(self._syncing is None, "one sync at a time for a partition")
        self._syncing = self.written
        targets = SyncTargets(self._dirty, [self.folder] if self.folder_dirty else [])
        self._dirty = []
        self.folder_dirty = False
        return targets

    def end_sync(self) -> None:
        """The sync ended well: what it covered is durable, and visible."""
        invariant(self._syncing is not None, "a sync ends after it began")
        self.durable, self._syncing = self._syncing or self.durable, None
        if self.durable.offset > self.visible.offset:
            self._show(self.durable)
        # Neither is needed for the promise: the witness stays a lower bound, the checkpoint can be rebuilt.
        with suppress(OSError):
            self._write_witness(self.witness.last.reserved)
            if self._unsaved_bytes >= self.limits.checkpoint_bytes:
                self.save_checkpoint()

    def stop(self, reason: str) -> None:
        """A sync failed: what the kernel holds is unknown from here on, so nothing more is written."""
        self.stopped = reason
        self._syncing = None
        self._discard_staged()

    def _show(self, point: Point) -> None:
        self.visible = self.stable = point
        if self.transactions.is_unstable:
            self.settle()
        self.remember(point)

    def settle(self) -> None:
        """Look again up to where every transaction is decided."""
        first = self.transactions.first_unstable(self.visible.offset)
        self.stable = first if first is not None and first.offset < self.visible.offset else self.visible
        if self.stable.offset < self.start_offset:
            self.stable = Point(self.start_offset, self.segment_for(self.start_offset), 0)

    def _take_back(self, reason: str) -> None:
        """Undo a failed group: cut what reached the file, forget the rest, and raise."""
        self.next_offset = self.written.offset
        self._discard_staged()
        try:
            if self.stopped is None:
                self.active.trim()
        except OSError as error:
            self.stop(f"{reason}; the torn tail cannot be cut back: {error}")
        raise StorageError(reason)

    def _discard_staged(self) -> None:
        self._clear_staged()
        self.producers.discard()
        self.transactions.discard()

    def _clear_staged(self) -> None:
        self._staged.clear()
        self._placed.clear()
        self.staged_bytes = 0

    def roll(self) -> None:
        """Start a new segment; the old one stays to be synced with the next group."""
        if self.active.end == 0:
            return  # a second segment of the same name would be the same file
        with suppress(OSError):  # it can be rebuilt
            self.save_checkpoint()
        try:
            if self.active.is_ahead:
                self.active.trim()
            segment = Segment.create(self.disk, self.folder, self.next_offset)
        except OSError as error:
            self._take_back(f"starting a segment in {self.folder} failed: {error}")
        # A tail that was cut from the old one must be gone before anything behind it counts: once it is not the
        # last segment, a tail that a power cut brings back is damage.
        self._mark_dirty(self.active.file)
        self.segments.append(segment)
        self.active = segment
        self.folder_dirty = True
        self.written = Point(self.next_offset, segment, 0)
        self._segment_old_ms = _NEVER_MS

    def start_afresh(self) -> None:
        """Start a new segment behind records that are all durable, so that the old one can be removed."""
        invariant(self.durable.offset == self.next_offset, "only durable records are left behind")
        self.roll()
        self._sync_now(*self._dirty, folder=True)
        self._dirty, self.folder_dirty = [], False
        self.durable = self.written
        self._show(self.written)

    def segment_for(self, offset: int) -> Segment:
        """The segment whose range holds `offset`."""
        at = bisect_right(self.segments, offset, key=lambda s: s.base_offset) - 1
        return self.segments[max(at, 0)]

    def segment_after(self, segment: Segment) -> Segment | None:
        at = bisect_right(self.segments, segment.base_offset, key=lambda s: s.base_offset)
        return self.segments[at] if at < len(self.segments) else None

    @property
    def last_staged(self) -> Point:
        """Where the batch appended last will stand."""
        base, size, _, _ = self._placed[-1]
        return Point(base, self.active, self.active.end + self.staged_bytes - size)

    def remember(self, point: Point) -> None:
        """Keep a batch boundary that somebody will likely read from next."""
        boundaries = self.boundaries
        boundaries.pop(point.offset, None)
        boundaries[point.offset] = point
        if len(boundaries) > BOUNDARIES_MAX:
            del boundaries[next(iter(boundaries))]

    def advance_start(self, offset: int) -> None:
        """Records below `offset` are gone; segments wholly below it are removed."""
        self.start_offset = max(self.start_offset, min(offset, self.visible.offset))
        if self.stable.offset < self.start_offset:
            self.settle()
        while len(self.segments) > 1 and self.segments[1].base_offset <= self.start_offset:
            if self.segments[0] is self.durable.segment or self.segments[0] is self.visible.segment:
                return
            self._move_witness_on()
            gone = self.segments[0]
            gone.remove()
            del self.segments[0]
            for key in [k for k, point in self.boundaries.items() if point.segment is gone]:
                del self.boundaries[key]
            # One at a time: a power cut must never leave a hole between segments.
            self._sync_now(folder=True)

    def _prove_start(self) -> None:
        """Make a witness durable before the first record is written.

        After a power cut only a witness proves that a torn tail was never acknowledged. A missing witness proves
        nothing: an operator or a damaged disk may have removed it, so recovery cuts nothing in front of a whole batch.
        A sync of the witness together with the first group is too late. A power cut keeps any part of what is not
        synced: the second batch, or the name of the second segment, without the first batch and without the witness.
        The cost is one sync of the file and one of the folder for a new partition, and after a restart once more while
        its witness was written at most SLOTS times. Later groups cost nothing.
        """
        self._prove_witness(self.witness.last.reserved)

    def _move_witness_on(self) -> None:
        """A witness that points into a removed segment proves nothing: make a newer one durable first."""
        if self._proven_segment < self.segments[1].base_offset:
            self._prove_witness(self.witness.last.reserved)
            self._proven_segment = self.witness.last.segment

    def _sync_now(self, *files: File, folder: bool) -> None:
        """A sync outside of the hot path; if it fails the partition stops, as after any failed sync."""
        try:
            for file in files:
                file.sync()
            if folder:
                self.disk.sync_folder(self.folder)
        except OSError as error:
            self.stop(f"a sync in {self.folder} failed: {error}")
            raise SyncFailedError(f"a sync in {self.folder} failed: {error}") from error

    def save_checkpoint(self) -> None:
        """Save the active index and the producers' state."""
        self.active.save_index()
        offset = self.written.offset
        save_file(self.disk, f"{self.folder}/{file_name(offset, PRODUCERS)}", encode_snapshot(self.producers, offset))
        self._unsaved_bytes = 0
        for old in base_offsets(self.disk.names(self.folder), PRODUCERS)[:-SNAPSHOTS_KEPT]:
            self.disk.remove(f"{self.folder}/{file_name(old, PRODUCERS)}")

    def recover_to(self, point: Point, witness: DurablePoint | None, witness_file: File | None) -> None:
        """Take over what recovery found: everything up to `point` is whole and durable."""
        self.next_offset = point.offset
        self.written = self.durable = point
        self._show(point)
        self.witness.recover_to(witness, witness_file)
        # The first ones may be in memory only, if a broker was killed. Before the fourth is written, one is durable.
        self._is_start_proven = witness is not None and witness.generation > SLOTS
        is_told = witness is not None and (witness.offset, witness.segment) == (point.offset, point.segment.base_offset)
        if not is_told:
            self._sync_now(*self.witness.unsettled, folder=False)
        # What recovery found can be seen from now on and must not pass for a torn tail after the next kill. Durable
        # with the first group, also what a killed broker left in memory only: with a witness from before a gap that
        # recovery left, what stands behind the gap looks like a torn tail.
        with suppress(OSError):
            if not is_told:
                self._write_witness(self.witness.last.reserved)
            self._dirty.append(self.witness.file)
            self.witness.leave_to_group()

    def _write_witness(self, reserved: int) -> None:
        if not self.witness.is_made:
            self.folder_dirty = True
        self.witness.write(self.durable, reserved)

    def _prove_witness(self, reserved: int) -> None:
        """Make the durable point durable at once."""
        self._sync_now(*self.witness.unsettled, folder=False)
        self._write_witness(reserved)
        self._sync_now(self.witness.file, folder=self.folder_dirty)
        self.folder_dirty = False
        self.witness.on_proven()
        self._dirty = [file for file in self._dirty if file is not self.witness.file]
        self._is_start_proven = True

    def fill_reserved(self, now_ms: int) -> bool:
        """After an unclean stop of what was a memory topic: skip every offset that may have been given out."""
        reserved = self.witness.last.reserved
        if reserved <= self.next_offset:
            return False
        filler = encode_filler(self.next_offset, reserved, now_ms)
        self.append(filler, reserved - self.next_offset - 1, now_ms, now_ms)
        self.flush()
        return True

    def discard(self) -> None:
        """The topic is deleted: let go of all files."""
        self.stop("the topic was deleted")
        self._close_files()

    def close(self) -> None:
        """Leave everything so that the next start has nothing to scan; the node has synced before."""
        if self.stopped is None:
            self.save_checkpoint()
            self._prove_witness(self.next_offset if self.config.in_memory else 0)
            if self.active.is_ahead:
                self.active.trim()
        self._close_files()

    def _close_files(self) -> None:
        for segment in self.segments:
            segment.close()
        if self.witness.is_made:
            self.witness.file.close()

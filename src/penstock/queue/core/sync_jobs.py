"""Syncs under way, and whose durable point has moved since the last checkpoint."""

from __future__ import annotations

from penstock.ports import File
from penstock.queue.core.events import Effect, Sync
from penstock.queue.core.partition import Partition


class SyncJobs:
    """Numbers the Sync effects of a node and remembers which partition each is for; several: durable points."""

    def __init__(self, checkpoint_ms: int) -> None:
        self._checkpoint_ms = checkpoint_ms
        self._jobs: dict[int, Partition | list[Partition]] = {}
        self._next_job = 0
        self._unwitnessed: dict[Partition, None] = {}
        self.checkpoint_at_ms: int | None = None

    @property
    def is_busy(self) -> bool:
        return bool(self._jobs)

    def start(self, partition: Partition) -> Sync:
        return self._number(partition, *partition.log.begin_sync())

    def _number(self, target: Partition | list[Partition], files: list[File], folders: list[str]) -> Sync:
        self._next_job += 1
        self._jobs[self._next_job] = target
        return Sync(self._next_job, files, folders)

    def end(self, job: int) -> Partition | list[Partition]:
        return self._jobs.pop(job)

    def forget(self, partition: Partition, effects: list[Effect]) -> None:
        """The partition's files are gone: neither a checkpoint nor a sync begun in this step may ask for them."""
        self._unwitnessed.pop(partition, None)
        for effect in [e for e in effects if type(e) is Sync and self._jobs[e.job] is partition]:
            effects.remove(effect)
            del self._jobs[effect.job]

    def unwitness(self, partition: Partition, now_ms: int) -> None:
        """Its durable point has moved: make that durable, too, before long."""
        self._unwitnessed[partition] = None
        if self.checkpoint_at_ms is None:
            self.checkpoint_at_ms = now_ms + self._checkpoint_ms

    def checkpoint(self) -> list[Sync]:
        """Make the durable points durable; sync memory topics in passing."""
        self.checkpoint_at_ms = None
        partitions, self._unwitnessed = self._unwitnessed, {}
        found, files, witnessed = [], [], []
        for partition in partitions:
            if partition.log.needs_sync:
                found.append(self.start(partition))
            if (file := partition.log.witness.begin_sync()) is not None:
                files.append(file)
                witnessed.append(partition)
        return [*found, self._number(witnessed, files, [])] if files else found

    def on_witnessed(self, partitions: list[Partition], is_durable: bool, now_ms: int) -> None:
        """A sync of durable points has ended; those that moved meanwhile, and had to wait for it, are next."""
        for partition in partitions:
            witness = partition.log.witness
            witness.end_sync(is_durable)
            if witness.is_dirty and partition.log.stopped is None:
                self.unwitness(partition, now_ms)

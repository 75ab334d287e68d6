"""Syncs under way, and whose durable point has moved since the last checkpoint."""

from __future__ import annotations

from penstock.broker.events import Effect, Sync
from penstock.broker.partition import Partition
from penstock.ports import File


class Syncs:
    """Numbers the Sync effects of a node and remembers which partition each is for; None: durable points."""

    def __init__(self, checkpoint_ms: int) -> None:
        self._checkpoint_ms = checkpoint_ms
        self._jobs: dict[int, Partition | None] = {}
        self._next_job = 0
        self._unwitnessed: dict[Partition, None] = {}
        self.checkpoint_at_ms: int | None = None

    @property
    def is_busy(self) -> bool:
        return bool(self._jobs)

    def start(self, partition: Partition) -> Sync:
        return self._number(partition, *partition.log.begin_sync())

    def _number(self, partition: Partition | None, files: list[File], folders: list[str]) -> Sync:
        self._next_job += 1
        self._jobs[self._next_job] = partition
        return Sync(self._next_job, files, folders)

    def end(self, job: int) -> Partition | None:
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
        found, files = [], []
        for partition in partitions:
            if partition.log.needs_sync:
                found.append(self.start(partition))
            if (file := partition.log.take_witness_sync()) is not None:
                files.append(file)
        return [*found, self._number(None, files, [])] if files else found

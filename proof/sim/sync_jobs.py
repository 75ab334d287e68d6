"""Syncs under way: they begin, go on file by file, end in any order, and die with the machine."""

from __future__ import annotations

from penstock.queue.core.events import Sync, Synced
from proof.sim.disk import FakeDisk, FakeFile


class Job:
    """One Sync effect. What it covers was fixed when it began."""

    def __init__(self, disk: FakeDisk, sync: Sync) -> None:
        self.number = sync.job
        self.files = [_fake(file) for file in sync.files]
        self.folders = list(sync.folders)
        self.paths = [file.path for file in self.files] + self.folders
        self._disk = disk
        self._tokens = [file.begin_sync() for file in self.files]
        self._folder_tokens = [disk.folder(path).begin_sync() for path in self.folders if disk.exists(path)]
        self.error: str | None = None

    @property
    def is_done(self) -> bool:
        return self.error is not None or not (self.files or self.folders)

    def advance(self) -> None:
        """Sync one more file or folder."""
        try:
            if self.files:
                self.files.pop(0).end_sync(self._tokens.pop(0))
            else:
                path = self.folders.pop(0)
                folder = self._disk.folder(path)
                self._disk.end_sync_folder(path, folder, self._folder_tokens.pop(0))
        except OSError as error:
            self.error = str(error)
            for file in self.files:
                file.abandon_sync()
            self.files.clear()

    @property
    def event(self) -> Synced:
        return Synced(self.number, self.error)


def _fake(file: object) -> FakeFile:
    if not isinstance(file, FakeFile):
        raise TypeError("only files of the fake disk are synced here")
    return file

"""A Load in a simulated world: it takes its time, and meanwhile anything may happen."""

from __future__ import annotations

from random import Random

from penstock.queue.core.events import Event, Load, Loaded
from proof.sim.disk import FakeDisk


class Loader:
    """Performs Load effects, in any order."""

    def __init__(self, disk: FakeDisk, chance: Random) -> None:
        self._disk = disk
        self._chance = chance
        self.under_way: dict[int, Load] = {}
        self.begun = 0
        self.needless: list[str] = []  # asked for although it was in memory
        self.missed: dict[str, None] = {}  # what the disk did not give for those that have just ended
        self._last: set[int] = set()
        self.is_last_over = False  # whoever gave up asking for it reads now, whatever is in memory

    def begin(self, load: Load, *, is_last: bool) -> None:
        self.begun += 1
        if is_last:
            self._last.add(load.job)
        self.under_way[load.job] = load
        told = self._disk.pages.told_absent
        wanted = [(part.file.path, part.position, part.length) for part in load.parts]
        self.needless += [part[0] for part in wanted if part not in told]

    def end_some(self, rate: float) -> list[Event]:
        """The ends of some of those under way; what they bring is in memory from here on."""
        self.missed = {}
        ending = [job for job in self.under_way if self._chance.random() < rate]
        self._chance.shuffle(ending)
        self.is_last_over = not self._last.isdisjoint(ending)
        self._last.difference_update(ending)
        for job in ending:
            for part in self.under_way.pop(job).parts:
                path = part.file.path
                try:
                    self._disk.call("read", path)
                    self._disk.pages.bring(self._disk.inode(path), part.position, part.length)
                except OSError:
                    self.missed[path] = None
        if not self.under_way:
            self._disk.pages.used.clear()
        return [Loaded(job) for job in ending]

    def drop_all(self) -> None:
        """The process is gone, and with it whoever waited."""
        self.under_way.clear()
        self._last.clear()
        self.needless.clear()
        self._disk.pages.told_absent.clear()

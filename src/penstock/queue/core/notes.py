"""What an operator finds in the log: notes of a node, as effects of its step."""

from __future__ import annotations

from penstock.queue.core.counters import Counters
from penstock.queue.core.events import Effect, Note
from penstock.queue.core.partition import Partition
from penstock.queue.log.scan import Damage


class Notes:
    """Writes notes, and counts the errors that they report."""

    __slots__ = ("_counters", "_effects")

    def __init__(self, effects: list[Effect], counters: Counters) -> None:
        """`effects` are those of the step, the same list for all parts of the node."""
        self._effects = effects
        self._counters = counters

    def note(self, level: str, event: str, **details: object) -> None:
        self._effects.append(Note(level, event, details))

    def of_partition(self, event: str, name: str, reason: str) -> None:
        """An error of one partition."""
        self.note("error", event, partition=name, reason=reason)

    def write_failed(self, partition: Partition, reason: str) -> None:
        self._counters.write_failures += 1
        self.of_partition("write failed", partition.name, reason)

    def damage(self, partition: Partition, damage: Damage) -> None:
        """Damage that was read; the same place is noted once."""
        self._counters.damaged_reads += 1
        if not partition.meet_damage(damage.offset):
            return
        where = {"offset": damage.offset, "next_offset": damage.next_offset}
        self.note("error", "damaged record", partition=partition.name, **where, reason=damage.reason)

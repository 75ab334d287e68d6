"""What owners of transactions did, as they know it, kept outside of the node."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from proof.sim.promises import Place


class Fate(Enum):
    """What its owner was told of a transaction."""

    UNTOLD = "untold"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, eq=False)
class Deed:
    """One transaction; until its owner asks to commit it, nobody may see anything of it."""

    transactional_id: str
    values: dict[Place, list[str]] = field(default_factory=dict)
    position: int | None = None
    is_commit_asked: bool = False
    fate: Fate = Fate.UNTOLD

    @property
    def may_be_seen(self) -> bool:
        return self.is_commit_asked and self.fate is not Fate.ABORTED


class Deeds:
    """All transactions, who was given which epoch when, and what readers of committed records saw."""

    def __init__(self) -> None:
        self.all: list[Deed] = []
        self.of_value: dict[str, Deed] = {}
        self.of_position: dict[tuple[str, int], Deed] = {}
        self.granted: dict[int, list[tuple[int, int]]] = {}  # producer id -> epoch and when
        self.owner_of: dict[int, str] = {}  # producer id -> transactional id
        self.decided: set[tuple[int, int]] = set()  # producer id and epoch of commits that were ever durable
        self._positions = 0

    def begin(self, transactional_id: str) -> Deed:
        deed = Deed(transactional_id)
        self.all.append(deed)
        return deed

    def next_position(self, deed: Deed) -> int:
        """A position that no other transaction commits."""
        self._positions += 1
        deed.position = self._positions
        self.of_position[deed.transactional_id, self._positions] = deed
        return self._positions


def group_of(transactional_id: str) -> str:
    return f"of-{transactional_id}"

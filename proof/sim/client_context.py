"""What simulated clients see of the world: chance, time, the way to the node, and where to write history."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from penstock.assure.history import Event
from penstock.kafka.wire.apis import APIS, ApiKey
from proof.sim.network import Client, Link
from proof.sim.promises import Ledger
from proof.sim.transaction_operations import Deeds

START_MS = 1_700_000_000_000


class Scene:
    """Shared by all clients of a world."""

    def __init__(self, chance: Random, connect: Callable[[Client], Link | None]) -> None:
        self.chance = chance
        self.connect = connect
        self.ledger = Ledger()
        self.deeds = Deeds()
        self.history: list[Event] = []
        self.now_ms = START_MS
        self.is_calm = False  # nothing new is begun: what is under way comes to an end

    def version(self, key: ApiKey, at_least: int = 0) -> int:
        """A version to speak, from all that the node offers."""
        api = APIS[key]
        return self.chance.randint(max(api.min_version, at_least), api.max_version)

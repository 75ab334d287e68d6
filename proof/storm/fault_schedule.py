"""What goes wrong in the storm, and when: drawn from one seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple

from penstock.kafka.wire.apis import ApiKey

BETWEEN_S = (0.3, 2.5)
# What answers are lost of; the ends of transactions and positions matter most.
LOSABLE = (
    ApiKey.PRODUCE, ApiKey.END_TXN, ApiKey.END_TXN, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT, ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_COMMIT, ApiKey.INIT_PRODUCER_ID, ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP, ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.FETCH, ApiKey.CREATE_TOPICS,
)  # fmt: skip
KINDS = {
    "kill-broker": 5, "pause-broker": 2, "kill-proxy": 2, "pause-proxy": 2,
    "kill-client": 5, "freeze-client": 3, "freeze-at-commit": 4, "leave": 3,
    "cut": 2, "cut-some": 2, "shut-gate": 1, "delay": 2, "swallow": 6, "hold-end": 4,
}  # fmt: skip
# Even a short storm has these.
FIRST = ("kill-broker", "kill-proxy", "pause-proxy", "kill-client")
NEVER_COMMIT = ("writer", "follower", "administrator")
DISK_KINDS = {"fill-disk": 2}
SYNC_KINDS = {"slow-syncs": 2, "failing-sync": 2}


class Deed(NamedTuple):
    """One thing that goes wrong: after `wait_s`, for `lasts_s`."""

    kind: str
    wait_s: float
    lasts_s: float = 0.0
    target: str = ""
    number: int = 0


class Span(NamedTuple):
    """When the weather began and ended."""

    from_s: float
    until_s: float


class Weather:
    """Deeds without end: kills of broker, proxy and a client, one of each other kind, then by weight."""

    def __init__(self, seed: int, players: Sequence[str], *, disk: bool, syncs: bool) -> None:
        self._chance = random.Random(f"weather/{seed}")
        self._players = list(players)
        self._committing = [name for name in players if not name.startswith(NEVER_COMMIT)] or self._players
        self._kinds = KINDS | (DISK_KINDS if disk else {}) | (SYNC_KINDS if syncs else {})
        others = [kind for kind in self._kinds if kind not in FIRST]
        self._first = [*FIRST, *self._chance.sample(others, len(others))]

    def next(self) -> Deed:
        chance = self._chance
        drawn = chance.choices(list(self._kinds), list(self._kinds.values()))[0]
        kind = self._first.pop(0) if self._first else drawn
        wait_s = chance.uniform(*BETWEEN_S)
        # Always drawn, so that a kind more or less does not change all that follows.
        short, long = chance.uniform(0.2, 3.0), chance.uniform(1.0, 10.0)
        player, key, count = chance.choice(self._players), chance.choice(LOSABLE), chance.randrange(1, 4)
        match kind:
            case "pause-broker" | "pause-proxy":
                return Deed(kind, wait_s, min(long, 7.0))
            case "kill-client" | "leave":
                return Deed(kind, wait_s, short, player)
            case "freeze-client":
                return Deed(kind, wait_s, long, player)
            case "freeze-at-commit":
                return Deed(kind, wait_s, 8 + long / 2, chance.choice(self._committing))
            case "kill-proxy" | "shut-gate" | "fill-disk":
                return Deed(kind, wait_s, short)
            case "delay":
                return Deed(kind, wait_s, long, number=chance.choice((5, 50, 300)))
            case "swallow":
                return Deed(kind, wait_s, target=str(int(key)), number=count)
            case "slow-syncs":
                return Deed(kind, wait_s, long, number=chance.choice((20_000, 200_000)))
            case "failing-sync":
                return Deed(kind, wait_s, short, number=chance.randrange(1, 60))
        return Deed(kind, wait_s)

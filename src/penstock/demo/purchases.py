"""Purchases as they come: many cards, few thieves, some late, some twice. One seed makes one stream."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

COUNTRIES = ("NL", "DE", "BE", "FR", "GB", "ES", "IT", "PL", "US")
CARDS = 200
ABROAD_SHARE = 0.06
THIEF_SHARE = 0.02  # a stolen card is used again and again, for much
THEFT_SHARE = 0.1
LARGE_SHARE = 0.005  # a car, a kitchen, or a mistake
LATE_SHARE = 0.05  # a terminal was offline for some minutes
REPEAT_SHARE = 0.04  # a terminal heard no answer and sends again
LATE_MAX_S = 900


def purchases(
    seed: int, begin: datetime, per_second: float, clock: Callable[[], datetime] | None = None
) -> Iterator[dict[str, Any]]:
    """An endless stream of purchases from `begin` on; `at` is when it happened, which may be a while ago.

    With a `clock` no purchase happens before the moment it is taken: a sender may be slower than `per_second`.
    """
    chance = random.Random(seed)
    homes = {f"card-{number:04}": chance.choices(COUNTRIES, range(len(COUNTRIES), 0, -1))[0] for number in range(CARDS)}
    cards = list(homes)
    recent: list[dict[str, Any]] = []
    stolen: list[str] = []
    number, now = 0, begin
    while True:
        now += timedelta(seconds=chance.expovariate(per_second))
        now = now if clock is None else max(now, clock())
        if recent and chance.random() < REPEAT_SHARE:
            yield chance.choice(recent)
            continue
        if chance.random() < THIEF_SHARE:
            stolen = [*stolen[-2:], chance.choice(cards)]
        is_theft = bool(stolen) and chance.random() < THEFT_SHARE
        card = chance.choice(stolen) if is_theft else chance.choice(cards)
        abroad = is_theft or chance.random() < ABROAD_SHARE
        late = timedelta(seconds=chance.uniform(30, LATE_MAX_S)) if chance.random() < LATE_SHARE else timedelta()
        number += 1
        purchase = {
            "id": f"{seed:x}-{number:08}",
            "card": card,
            "amount": _amount(chance, is_theft),
            "country": chance.choice(COUNTRIES) if abroad else homes[card],
            "home": homes[card],
            "at": (now - late).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        recent = [*recent[-49:], purchase]
        yield purchase


def _amount(chance: random.Random, is_theft: bool) -> float:
    if is_theft:
        return round(chance.uniform(300, 2_500), 2)
    if chance.random() < LARGE_SHARE:
        return round(chance.uniform(2_000, 9_000), 2)
    return round(min(chance.lognormvariate(3.4, 1.1), 2_000), 2)

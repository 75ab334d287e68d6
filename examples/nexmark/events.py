"""The events of an auction house, from a seed: of fifty, one is a person, three are auctions, and the others bids."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

BEGIN = datetime(2026, 1, 1, 7, 59, 50, tzinfo=UTC)
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple", "channel-17", "channel-4711")
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CITIES = ("Phoenix", "Los Angeles", "Boise", "Portland", "Seattle", "Cheyenne")


class Event(NamedTuple):
    """One event and its topic."""

    topic: str
    row: dict[str, Any]


def events(count: int, seed: int, per_second: int = 20) -> Iterator[Event]:
    """The first `count` events, in the order of their time."""
    chance = random.Random(seed)
    people, auctions = [1000], [1000]
    for number in range(count):
        at = BEGIN + timedelta(seconds=number / per_second)
        place = number % 50
        if place == 0:
            people.append(people[-1] + 1)
            yield Event("person", _person(people[-1], at, chance))
        elif place < 4:
            auctions.append(auctions[-1] + 1)
            yield Event("auction", _auction(auctions[-1], chance.choice(people[-5:]), at, chance))
        else:
            yield Event("bid", _bid(chance.choice(auctions[-8:]), chance.choice(people[-5:]), at, chance))


def _person(id: int, at: datetime, chance: random.Random) -> dict[str, Any]:
    place = chance.randrange(len(_STATES))
    return {
        "id": id,
        "name": f"person {id}",
        "emailAddress": f"{id}@example.org",
        "creditCard": f"{chance.randrange(10**16):016}",
        "city": _CITIES[place],
        "state": _STATES[place],
        "dateTime": _text(at),
        "extra": "",
    }


def _auction(id: int, seller: int, at: datetime, chance: random.Random) -> dict[str, Any]:
    first = chance.randrange(100, 10_000)
    return {
        "id": id,
        "itemName": f"item {id}",
        "description": "as new",
        "initialBid": first,
        "reserve": 2 * first,
        "dateTime": _text(at),
        "expires": _text(at + timedelta(seconds=chance.uniform(1, 12))),
        "seller": seller,
        "category": chance.randrange(10, 15),
        "extra": "",
    }


def _bid(auction: int, bidder: int, at: datetime, chance: random.Random) -> dict[str, Any]:
    channel = chance.choice(_CHANNELS)
    query = (
        f"?query=1&channel_id={channel.rpartition('-')[2]}" if "-" in channel and chance.random() < 0.5 else "?query=1"
    )
    return {
        "auction": auction,
        "bidder": bidder,
        "price": int(10 ** chance.uniform(2, 8)),
        "channel": channel,
        "url": f"https://www.nexmark.com/{chance.choice('abc')}/{chance.choice('def')}/item.htm{query}",
        "dateTime": _text(at),
        "extra": "".join(chance.choices("abcd", k=20)),
    }


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")

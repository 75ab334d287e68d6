"""The example's stream of purchases and its judge."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

from examples.fraud.oracle import decisions
from penstock.demo.purchases import purchases

BEGIN = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


def purchase(id: str, amount: float, at: str = "2026-11-16T12:10:00Z", country: str = "NL") -> dict[str, Any]:
    return {"id": id, "card": "c", "amount": amount, "country": country, "home": "NL", "at": at}


def test_one_seed_makes_one_stream() -> None:
    """Another seed another one; some purchases are late, some come twice, some are of thieves."""
    first = list(islice(purchases(7, BEGIN, 10.0), 2_000))
    assert first == list(islice(purchases(7, BEGIN, 10.0), 2_000))
    assert first != list(islice(purchases(8, BEGIN, 10.0), 2_000))
    ids = [one["id"] for one in first]
    assert 40 < len(ids) - len(set(ids)) < 160
    assert any(datetime.fromisoformat(one["at"]) < BEGIN for one in first)
    declined = [one for one in decisions(first).values() if one.decision == "declined"]
    assert {(one.reason or "").lstrip("0123456789. ") for one in declined} == {"amount", "abroad", "spent in the hour"}


def test_the_oracle_decides_by_amount_country_and_spend() -> None:
    """In this order."""
    found = decisions(
        [
            purchase("a", 5_001),
            purchase("b", 901, at="2026-11-16T13:00:00Z", country="US"),
            purchase("c", 1_000, at="2026-11-16T13:10:00Z"),
            purchase("d", 1_100, at="2026-11-16T13:20:00Z"),
            purchase("e", 10, at="2026-11-16T14:00:00Z"),
        ]
    )
    assert [one.reason for one in found.values()] == ["amount", "abroad", None, "3001.00 spent in the hour", None]
    assert found["d"].spent == 3_001


def test_a_purchase_that_names_no_home_is_of_a_card_at_home() -> None:
    """As the README's purchase, which both apps decide alike."""
    bare = {"id": "p-1", "card": "4711", "amount": 950, "country": "US", "at": "2026-11-16T12:10:00Z"}
    assert decisions([bare])["p-1"].reason == "abroad"
    assert decisions([bare | {"country": "NL"}])["p-1"].reason is None


def test_a_purchase_that_comes_twice_counts_once() -> None:
    """And is decided as it was the first time."""
    twice = [purchase("a", 2_000), purchase("b", 900), purchase("a", 2_000), purchase("c", 200)]
    found = decisions(twice)
    assert (found["a"].spent, found["b"].spent, found["c"].spent) == (2_000, 2_900, 3_100)


def test_a_slow_sender_sends_purchases_of_now() -> None:
    """At a rate that it does not reach, purchases would fall behind until they are too late to be decided."""
    now = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    stream = purchases(1, now, per_second=1_000.0, clock=lambda: now)
    for _ in range(200):
        now += timedelta(minutes=1)
        at = datetime.fromisoformat(next(stream)["at"])
        assert now - at < timedelta(hours=2)  # some come late, some twice

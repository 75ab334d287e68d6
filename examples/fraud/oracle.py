"""What each decision must be, in plain Python: the judge of the query."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from penstock.demo.app import ABROAD_MAX, AMOUNT_MAX, HOME, HOUR_MAX


class Decision(NamedTuple):
    """What is decided of one purchase."""

    spent: float
    decision: str
    reason: str | None


def decisions(purchases: Iterable[dict[str, Any]]) -> dict[str, Decision]:
    """The decision for each id, from purchases in the order in which the queue holds those of a card; none too late."""
    spent: dict[tuple[str, datetime], float] = {}
    found: dict[str, Decision] = {}
    for purchase in purchases:
        if purchase["id"] in found:
            continue
        at = datetime.fromisoformat(purchase["at"])
        hour = purchase["card"], at.replace(minute=0, second=0, microsecond=0)
        spent[hour] = spent.get(hour, 0.0) + purchase["amount"]
        reason = _reason(purchase, spent[hour])
        found[purchase["id"]] = Decision(round(spent[hour], 2), "declined" if reason else "approved", reason)
    return found


def _reason(purchase: dict[str, Any], spent: float) -> str | None:
    if purchase["amount"] > AMOUNT_MAX:
        return "amount"
    if purchase["country"] != (purchase.get("home") or HOME) and purchase["amount"] > ABROAD_MAX:
        return "abroad"
    return f"{spent:.2f} spent in the hour" if spent > HOUR_MAX else None

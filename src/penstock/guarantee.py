"""The four answers of a business, and what they contradict; policies.py has what follows from them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

Outage = Literal["catastrophic", "costly", "tolerable"]
Delivery = Literal["at-most-once", "at-least-once", "exactly-once"]
QueueKind = Literal["penstock", "kafka"]

OUTAGES = ("tolerable", "costly", "catastrophic")  # weakest promise first
DELIVERIES = ("at-most-once", "at-least-once", "exactly-once")
UNITS_MS = {"ms": 1, "millisecond": 1, "second": 1000, "minute": 60_000, "hour": 3_600_000, "day": 86_400_000}

NO_HISTORY_MS = UNITS_MS["hour"]
MEMORY_SYNC_MS = 2 * UNITS_MS["second"]  # memory topics are synced every second, in passing


@dataclass(frozen=True, slots=True)
class Guarantee:
    """What the business needs: four questions, each with its answer in the words of the question."""

    outage: str = "costly"
    loss: str = "none"
    history: str = "7 days"
    delivery: str = "at-least-once"

    def faults(self) -> list[str]:
        """What is wrong with the answers themselves, wherever they are to be kept."""
        found = []
        if self.outage not in OUTAGES:
            found.append(f"outage is one of {', '.join(reversed(OUTAGES))}, not {self.outage!r}")
        if self.delivery not in DELIVERIES:
            found.append(f"delivery is one of {', '.join(DELIVERIES)}, not {self.delivery!r}")
        if self.loss not in ("none", "some") and duration_ms(self.loss) is None:
            found.append(f"loss is none, some or a duration such as '5 seconds', not {self.loss!r}")
        if self.history not in ("none", "forever") and not duration_ms(self.history):
            found.append(f"history is none, forever or a duration such as '90 days', not {self.history!r}")
        if not found:
            found += self._contradictions()
        return found

    def _contradictions(self) -> list[str]:
        if self.loss == "none" and self.delivery == "at-most-once":
            return [
                "loss='none' contradicts delivery='at-most-once', which gives up what is under way when something "
                "fails: say loss='some', or delivery='at-least-once'"
            ]
        if self.loss != "none" and self.delivery == "exactly-once":
            return [
                f"loss={self.loss!r} contradicts delivery='exactly-once', which counts every event: "
                "say loss='none', or delivery='at-most-once'"
            ]
        return []


@dataclass(frozen=True, slots=True)
class Queue:
    """What the queue is that must keep the promise."""

    kind: QueueKind = "penstock"
    brokers: int = 1


def refusals(guarantee: Guarantee, queue: Queue) -> list[str]:
    """Why this queue cannot keep the guarantee, each with the way out; also of one with faults."""
    found = []
    if guarantee.outage == "catastrophic" and queue.brokers < 3:
        found.append(
            "outage='catastrophic' needs three copies on three machines, and this queue is "
            f"{'one machine' if queue.brokers == 1 else f'{queue.brokers} machines'}: "
            "give a Kafka cluster with --queue, or say outage='costly'"
        )
    return found


def copies_words(guarantee: Guarantee, copies: int, min_insync: int) -> str:
    """What loss='none' does not cover on a cluster, since too few copies acknowledge; empty where two do."""
    if guarantee.loss != "none" or min(copies, min_insync) > 1:
        return ""
    if copies == 1:
        return "one copy: a lost disk loses records"
    return f"{copies} copies with min.insync.replicas=1: records that one copy acknowledged are lost with its disk"


def weakest(*guarantees: Guarantee) -> Guarantee:
    """What holds of a path whose links promise these: for each question the weakest answer."""
    result = guarantees[0]
    for other in guarantees[1:]:
        result = replace(
            result,
            outage=min(result.outage, other.outage, key=OUTAGES.index),
            delivery=min(result.delivery, other.delivery, key=DELIVERIES.index),
            loss=max(result.loss, other.loss, key=loss_ms),
            history=min(result.history, other.history, key=_history_ms),
        )
    return result


def duration_ms(text: str) -> int | None:
    """Milliseconds of '90 days', '1 hour', '500 ms'; None if it is no duration."""
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]+)\s*", text.lower())
    if match is None:
        return None
    unit = match[2] if match[2] in UNITS_MS else match[2].removesuffix("s")
    return int(match[1]) * UNITS_MS[unit] if unit in UNITS_MS else None


def loss_ms(loss: str) -> float:
    """How much may be lost, as time; infinite for 'some'."""
    return {"none": 0.0, "some": float("inf")}.get(loss, float(duration_ms(loss) or 0))


def _history_ms(history: str) -> float:
    return {"none": 0.0, "forever": float("inf")}.get(history, float(duration_ms(history) or 0))

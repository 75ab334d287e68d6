"""The four answers of a business, and every setting that follows from them."""

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
_FOR_EVER = -1


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


@dataclass(frozen=True, slots=True)
class Setting:
    """One consequence of a guarantee: where it applies, what it is, and why."""

    tier: Literal["queue", "ingest", "analyze", "deliver"]
    name: str
    value: str
    reason: str


def plan_settings(guarantee: Guarantee, queue: Queue) -> list[Setting]:
    """Every setting that follows from a guarantee without faults, each with its reason."""
    return [*_queue(guarantee, queue), *_ingest(guarantee), *_analyze(guarantee), *_deliver(guarantee)]


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
            loss=max(result.loss, other.loss, key=_loss_ms),
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


def _loss_ms(loss: str) -> float:
    return {"none": 0.0, "some": float("inf")}.get(loss, float(duration_ms(loss) or 0))


def _history_ms(history: str) -> float:
    return {"none": 0.0, "forever": float("inf")}.get(history, float(duration_ms(history) or 0))


def _queue(guarantee: Guarantee, queue: Queue) -> list[Setting]:
    found = [_durability(guarantee, queue), _retention(guarantee)]
    if guarantee.outage == "catastrophic":
        found.append(Setting("queue", "replication.factor", "3", "an outage is catastrophic: one machine may be lost"))
        found.append(Setting("queue", "min.insync.replicas", "2", "acknowledged means on two machines"))
    elif queue.kind == "kafka":
        copies = min(3, queue.brokers)
        found.append(
            Setting("queue", "replication.factor", str(copies), "as many copies as the cluster has room for, up to 3")
        )
        if copies == 3 and guarantee.loss == "none":
            why = "acknowledged means on two machines, so that the loss of one loses nothing"
            found.append(Setting("queue", "min.insync.replicas", "2", why))
    return found


def _durability(guarantee: Guarantee, queue: Queue) -> Setting:
    bound_ms = _loss_ms(guarantee.loss)
    on_disk = bound_ms < MEMORY_SYNC_MS
    if queue.kind == "kafka":
        every = "flush.messages", "1", "nothing acknowledged may be lost: fsync before the acknowledgement"
        if not on_disk and guarantee.loss == "some":
            return Setting("queue", "flush.ms", str(2**63 - 1), "loss is tolerable: Kafka's own default, no fsync")
        if not on_disk:
            return Setting("queue", "flush.ms", str(int(bound_ms)), f"at most {guarantee.loss} may be lost")
        return Setting("queue", *every)
    if on_disk:
        why = (
            "nothing acknowledged may be lost"
            if guarantee.loss == "none"
            else f"{guarantee.loss} is less than a memory topic keeps"
        )
        return Setting("queue", "penstock.durability", "disk", f"{why}: fsync before the acknowledgement")
    why = (
        "loss is tolerable"
        if guarantee.loss == "some"
        else f"up to {guarantee.loss} may be lost, and it is synced every second"
    )
    return Setting("queue", "penstock.durability", "memory", f"{why}: acknowledged once written")


def _retention(guarantee: Guarantee) -> Setting:
    if guarantee.history == "forever":
        return Setting("queue", "retention.ms", str(_FOR_EVER), "history is kept for ever")
    if guarantee.history == "none":
        return Setting(
            "queue",
            "retention.ms",
            str(NO_HISTORY_MS),
            "no history: an hour, so that a query can catch up after an outage",
        )
    asked_ms = duration_ms(guarantee.history) or 0
    kept_ms = max(asked_ms, NO_HISTORY_MS)
    more = ", and an hour at least, so that a query can catch up" if kept_ms > asked_ms else ""
    return Setting("queue", "retention.ms", str(kept_ms), f"history of {guarantee.history}{more}")


def _ingest(guarantee: Guarantee) -> list[Setting]:
    if guarantee.delivery == "at-most-once":
        return [
            Setting("ingest", "acks", "1", "at most once: one try, no waiting for copies"),
            Setting("ingest", "retries", "0", "at most once: a retry could store an event twice"),
            Setting("ingest", "enable.idempotence", "false", "there are no retries that could double an event"),
            Setting("ingest", "overload", "drop", "what does not fit is dropped and counted; the sender is told 429"),
        ]
    settings = [
        Setting("ingest", "acks", "all", "the sender hears 202 only when the event is as safe as it will ever be"),
        Setting("ingest", "retries", "2147483647", "until delivery.timeout.ms: an outage of the queue is waited for"),
        Setting("ingest", "enable.idempotence", "true", "a retry whose first try had arrived is recognised"),
        Setting("ingest", "overload", "refuse", "503 with Retry-After: nothing is accepted that could be lost"),
    ]
    if guarantee.delivery == "exactly-once":
        settings.append(
            Setting(
                "ingest", "sent.again", "stored",
                "a sender that heard nothing and sends again stores a second event, with the same id if it gives one: "
                "drop it in the query, by dropDuplicates",
            )
        )  # fmt: skip
    return settings


def _analyze(guarantee: Guarantee) -> list[Setting]:
    go_on = Setting(
        "analyze", "start.from", "checkpoint", "goes on where it stopped; the first time at the earliest event"
    )
    if guarantee.delivery == "exactly-once":
        return [
            Setting("analyze", "mode", "microbatch", "a result counts only with the whole batch it came from"),
            go_on,
            Setting(
                "analyze", "sink", "transaction",
                "the results of a batch and its number are committed together: a batch done again is recognised",
            ),
        ]  # fmt: skip
    every = {"catastrophic": "10 seconds", "costly": "30 seconds", "tolerable": "60 seconds"}[guarantee.outage]
    commit = Setting(
        "analyze", "commit.every", every,
        "how much is done again after a crash, against how often a real-time query pauses for its commit",
    )  # fmt: skip
    if guarantee.delivery == "at-most-once":
        return [
            commit,
            Setting("analyze", "start.from", "latest", "at most once: a new checkpoint at every start, from now on"),
            Setting("analyze", "sink", "fire", "results are written once; a crash loses what was under way"),
        ]
    return [
        commit,
        go_on,
        Setting(
            "analyze",
            "sink",
            "repeat",
            "after a crash results since the last commit come again; with the same penstock-id if they keep _event",
        ),
    ]


def _deliver(guarantee: Guarantee) -> list[Setting]:
    if guarantee.delivery == "at-most-once":
        return [
            Setting("deliver", "resume", "no", "fire and forget"),
            Setting("deliver", "dedup", "none", "nothing is sent twice, so there is nothing to drop"),
        ]
    resume = Setting(
        "deliver", "resume", "yes", "every message has a token, and a client that comes back gets what it missed"
    )
    if guarantee.delivery == "exactly-once":
        why = "each result stands once in the topic for whoever reads what is committed, as our doors do"
        return [resume, Setting("deliver", "dedup", "none", why)]
    return [
        resume,
        Setting(
            "deliver",
            "dedup",
            "reader",
            "a repeat that keeps _event has the same penstock-id: who counts drops it",
        ),
    ]

"""Writes the tables of docs/guarantees.md from the code that decides: python tools/guarantee_table.py."""

from __future__ import annotations

from pathlib import Path

from penstock.guarantee import Guarantee, Queue, refusals
from penstock.plan.policies import policy_of

PAGE = Path(__file__).parent.parent / "docs" / "guarantees.md"
BEGIN, END = "<!-- made by tools/guarantee_table.py -->\n", "<!-- end -->\n"
ANSWERS = {
    "loss": [Guarantee(loss="none"), Guarantee(loss="5 seconds"), Guarantee(loss="some")],
    "history": [Guarantee(history="none"), Guarantee(history="90 days"), Guarantee(history="forever")],
    "outage": [Guarantee(outage="tolerable"), Guarantee(outage="costly"), Guarantee(outage="catastrophic")],
    "delivery": [
        Guarantee(loss="some", delivery="at-most-once"),
        Guarantee(delivery="at-least-once"),
        Guarantee(delivery="exactly-once"),
    ],
}
ABOUT = {
    "loss": ("penstock.durability", "flush.messages", "flush.ms", "min.insync.replicas"),
    "history": ("retention.ms",),
    "outage": ("replication.factor", "min.insync.replicas", "copies_required", "commit_every"),
    "delivery": (
        "acks",
        "retries",
        "idempotent",
        "overload",
        "output",
        "start",
        "modes",
        "isolation",
        "batch_events_max",
        "resume",
        "repeats",
        "may_skip",
    ),
}
QUEUES = {"Penstock's broker": Queue(), "a Kafka cluster of three": Queue("kafka", 3)}


def tables() -> str:
    """For each answer what follows from it that does not follow from another, on each queue."""
    parts = []
    for name, queue in QUEUES.items():
        lines = [f"### On {name}", "", "| answer | setting | value | because |", "|---|---|---|---|"]
        for question, guarantees in ANSWERS.items():
            for guarantee in guarantees:
                lines += _rows(question, guarantee, queue)
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _rows(question: str, guarantee: Guarantee, queue: Queue) -> list[str]:
    answer = f"{question} = {getattr(guarantee, question)}"
    wrong = guarantee.faults() or refusals(guarantee, queue)
    if wrong:
        return [f"| {answer} | refused | | {wrong[0]} |"]
    return [
        f"| {answer} | {s.tier}: `{s.name}` | `{s.value}` | {s.reason} |"
        for s in policy_of(guarantee, queue).rows(queue.kind)
        if s.name in ABOUT[question]
    ]


def page(text: str) -> str:
    """The page with its tables made anew."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + tables() + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")

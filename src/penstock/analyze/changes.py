"""Whether each query may go on from its checkpoint, and what to say where it may not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.analyze.checkpoints import Checkpoint, switch_fault
from penstock.analyze.fingerprint.comparison import Changed, Compatible, Fingerprint, compare
from penstock.analyze.kept import Kept, obey
from penstock.analyze.order_logs import Log, first_pending
from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError
from penstock.plan.plan import QueryPlan


@dataclass(frozen=True)
class Change:
    """Why a query cannot go on from its checkpoint, and which orders help."""

    reasons: tuple[str, ...]
    is_transactional: bool
    may_keep_state: bool = True  # Spark would go on, rightly or wrongly


def change_of(
    query: QueryPlan, checkpoint: Checkpoint, kept: Kept, now: Fingerprint, against_real_time: str | None
) -> Change | None:
    """Why this query cannot go on from this checkpoint; None if it can, or if it starts on a new one.

    `against_real_time` is why it cannot run in real time as it is now.
    """
    if query.from_latest or not checkpoint.is_begun or kept.is_void:
        return None
    if fault := switch_fault(query.mode, checkpoint.remembered(), against_real_time):
        return Change((fault,), query.is_transactional, may_keep_state=False)
    found = compare(kept.fingerprint, now)
    return Change(found.reasons, query.is_transactional) if isinstance(found, Changed) else None


def remark_of(query: QueryPlan, checkpoint: Checkpoint, now: Fingerprint) -> str | None:
    """What to say of a query that goes on from its checkpoint although it was changed."""
    if query.from_latest or not checkpoint.is_begun or checkpoint.kept().is_void:
        return None
    found = compare(checkpoint.kept().fingerprint, now)
    return found.remark if isinstance(found, Compatible) else None


def kept_then(checkpoint: Checkpoint, name: str, logs: tuple[Log, ...]) -> Kept:
    """What will be kept of a query once it has obeyed what is ordered now."""
    kept = checkpoint.kept()
    while found := first_pending(logs, name, kept):
        kept = obey(kept, *found)
    return kept


def refuse_changed(faults: Mapping[str, tuple[str, ...]], changes: Mapping[str, Change], data: Path) -> None:
    """ConfigError with all of them, and with the orders that let a changed query start."""
    said = [f"query {name}: {fault}" for name, found in faults.items() for fault in found]
    for name, change in changes.items():
        said.append(
            f"query {name} was changed, and cannot go on from its checkpoint: {'; '.join(change.reasons)}. "
            "Undo the change, or give one of these orders, then start the app again."
        )
        said += (f"  {line}" for line in _commands(name, change, data))
    if said:
        raise ConfigError(*said)


def _commands(name: str, change: Change, data: Path) -> list[str]:
    start = f"penstock queries start {name}"
    where = "" if data == Path.cwd() / BrokerConfig().data else f" --data {data}"
    repeats = "all results are written again" if change.is_transactional else "results are written again"
    lines = [
        f"{start} --from beginning{where}  (all events that the topics hold; {repeats})",
        f"{start} --from latest{where}  (only events that come after the start)",
    ]
    if change.may_keep_state:
        lines.append(f"{start} --keep-state{where}  (goes on, with state that the query before has made)")
    return lines

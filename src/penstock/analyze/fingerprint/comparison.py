"""What a query is, as far as its checkpoint depends on it, and whether a changed query may go on from it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_LINE_MAX = 160


@dataclass(frozen=True)
class Fingerprint:
    """A query as it was when it last started. A field that is added has a default: stored ones lack it."""

    text: str  # digest of the SQL text, or of the function and the app's own code that it uses
    topics: tuple[str, ...]  # in the order in which Spark's checkpoint has their positions
    spark: str
    state: tuple[str, ...] = ()  # each stateful operator and all below it, a line an operator; empty: stateless
    columns: Mapping[str, str] = field(default_factory=dict)  # TOPIC.COLUMN and type of what the state is made of
    emit: str = "changes"  # which rows it writes
    code: str = ""  # digest of the app's Python code below or in a stateful operator


@dataclass(frozen=True)
class Compatible:
    """The query goes on from its checkpoint; `remark` says what changed, None if nothing did."""

    remark: str | None = None


@dataclass(frozen=True)
class Changed:
    """The query cannot go on from its checkpoint."""

    reasons: tuple[str, ...]


def compare(kept: Fingerprint | None, now: Fingerprint) -> Compatible | Changed:
    """Whether the query `now` may go on from the checkpoint of `kept`; None: stored before there were fingerprints."""
    if kept is None:
        return Compatible("its checkpoint has no fingerprint, and gets one: later changes are noticed")
    if kept == now:
        return Compatible()
    if reasons := tuple(_reasons(kept, now)):
        return Changed(reasons)
    what = "Spark changed" if kept.text == now.text else "the query changed"
    if kept.spark != now.spark:
        what += f" (Spark {kept.spark} to {now.spark})"
    if not now.state:
        return Compatible(f"{what}: it keeps no state, and goes on from its position")
    return Compatible(f"{what}: its state is made as before, and it goes on with it")


def _reasons(kept: Fingerprint, now: Fingerprint) -> Iterator[str]:
    if kept.topics != now.topics:
        yield f"it reads {_names(now.topics)}, and its positions are of {_names(kept.topics)}"
    if kept.emit != now.emit and (kept.state or now.state):
        yield f"it wrote emit='{kept.emit}', and writes emit='{now.emit}' now: rows of another meaning"
    if kept.text == now.text and kept.columns == now.columns and kept.code == now.code:
        return  # the same query: another version of Spark may say its plan in other words
    if kept.spark != now.spark and kept.state != now.state:
        yield f"it was changed together with Spark ({kept.spark} to {now.spark}), so its state cannot be compared"
        return
    if kept.state or now.state:
        yield from _state_reasons(kept, now)


def _state_reasons(kept: Fingerprint, now: Fingerprint) -> Iterator[str]:
    retyped = [name for name in kept.columns if now.columns.get(name, kept.columns[name]) != kept.columns[name]]
    for name in retyped:
        yield f"column {name} was {kept.columns[name]} and is {now.columns[name]}"
    if kept.state != now.state:
        yield _difference(kept.state, now.state)
    elif kept.columns.keys() != now.columns.keys():
        more = sorted(now.columns.keys() - kept.columns.keys())
        less = sorted(kept.columns.keys() - now.columns.keys())
        said = [f"keeps {_names(more)}" for _ in more[:1]] + [f"no longer keeps {_names(less)}" for _ in less[:1]]
        yield f"its state {' and '.join(said)}"
    if kept.code != now.code:
        yield "Python code that makes its state was changed"


def _difference(kept: tuple[str, ...], now: tuple[str, ...]) -> str:
    if not kept:
        return f"it keeps state now: {_short(now[0])}"
    if not now:
        return f"it kept state, and keeps none now: {_short(kept[0])}"
    pairs = zip((*kept, "nothing"), (*now, "nothing"), strict=False)
    before, after = next(pair for pair in pairs if pair[0] != pair[1])
    return f"its state was made by {_short(before)}, and now by {_short(after)}"


def _short(line: str) -> str:
    line = line.strip()
    return line if len(line) <= _LINE_MAX else f"{line[:_LINE_MAX]}…"


def _names(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(names) or "no topic"

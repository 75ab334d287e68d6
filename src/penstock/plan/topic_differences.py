"""What a topic in the queue is, what the plan wants, and what may be done about each difference. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

import msgspec

from penstock.plan.topics import INTERNAL_PREFIX, Wanted

_MIN_INSYNC = "min.insync.replicas"
_RETENTION = ("retention.ms", "retention.bytes")


@dataclass(frozen=True, slots=True)
class Existing:
    """A topic as the queue describes it."""

    topic_id: str
    partitions: int
    replicas: int
    settings: Mapping[str, str]


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """The registry's record of a topic: Penstock created it, or an operator let Penstock adopt it."""

    topic: str
    topic_id: str
    app: str
    settings: dict[str, str]  # those that Penstock set
    adopted: bool = False


class Action(Enum):
    """What becomes of a difference."""

    SET = "set"  # Penstock changes the setting of the topic
    KEEP = "kept"  # the topic has more than the guarantee asks for, or fewer copies, and stays as it is
    REFUSE = "refused"  # the topic has less, and Penstock may not, or cannot, change it


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting of one topic that is not as the plan wants it."""

    topic: str
    setting: str
    wanted: str
    there: str
    action: Action
    reason: str

    @property
    def sentence(self) -> str:
        """The difference for people."""
        if self.setting == "partitions":
            what = f"has {self.there} partitions in the queue and {self.wanted} in the app"
            return f"topic {self.topic} {what}: {self.reason}"
        if self.action is Action.SET:
            return f"topic {self.topic}: {self.setting} changes from {self.there} to {self.wanted}{self.reason}"
        return f"topic {self.topic}: {self.setting} is {self.there}, and the app wants {self.wanted}: {self.reason}"


def compare(
    app: str, wanted: Wanted, there: Existing, made: Made | None, *, adopt: bool = False
) -> Iterator[Difference]:
    """Every difference between a topic and its plan. Retention that Penstock did not set is never shortened."""
    if there.partitions != wanted.partitions:
        reason = f"say partitions={there.partitions}, or take a new name"
        yield _refusal(wanted, "partitions", str(wanted.partitions), str(there.partitions), reason)
    if there.replicas < wanted.replicas:
        yield _fewer_copies(wanted, there)
    maker = maker_of(wanted.name, there, made)
    for name, value in wanted.settings.items():
        have = there.settings.get(name, "unknown")
        if have == value:
            continue
        if name == _MIN_INSYNC and not wanted.needs_copies and int(value) > there.replicas:
            continue  # the topic could not be written with it; the difference of copies says enough
        if not (adopt or maker in (app, INTERNAL_PREFIX)):
            yield _of_others(wanted, name, value, have, maker)
        elif name in _RETENTION and _is_stronger(name, have, value) and not _was_set(made, name, have):
            reason = (
                "kept, for Penstock did not set it and records would be deleted. "
                f"To shorten it: penstock topics alter {wanted.name} --config {name}={value}"
            )
            yield Difference(wanted.name, name, value, have, Action.KEEP, reason)
        else:
            deletes = name in _RETENTION and _is_stronger(name, have, value)
            reason = "; the queue deletes the records beyond it" if deletes else ""
            yield Difference(wanted.name, name, value, have, Action.SET, reason)


def maker_of(name: str, there: Existing, made: Made | None) -> str | None:
    """The app that created or adopted this very topic; None if no app did."""
    if name.startswith(INTERNAL_PREFIX):
        return INTERNAL_PREFIX
    return made.app if made is not None and made.topic_id == there.topic_id else None


def _of_others(wanted: Wanted, name: str, value: str, have: str, maker: str | None) -> Difference:
    whose = f"the app {maker} made the topic" if maker else "Penstock did not make the topic"
    if _is_stronger(name, have, value):
        reason = f"kept, for {whose} and it keeps more than the guarantee asks for"
        return Difference(wanted.name, name, value, have, Action.KEEP, reason)
    if name == _MIN_INSYNC and not wanted.needs_copies:
        reason = f"kept, for {whose}. Pass --adopt {wanted.name} to change it"
        return Difference(wanted.name, name, value, have, Action.KEEP, reason)
    reason = f"{whose}. Pass --adopt {wanted.name} to change it, or weaken the guarantee"
    return _refusal(wanted, name, value, have, reason)


def _fewer_copies(wanted: Wanted, there: Existing) -> Difference:
    name, value, have = "replication.factor", str(wanted.replicas), str(there.replicas)
    if wanted.needs_copies:
        reason = "reassign its partitions to more brokers, or weaken the guarantee (outage)"
        return _refusal(wanted, name, value, have, reason)
    reason = "kept, for Penstock moves no partitions. To have more copies, reassign its partitions to more brokers"
    return Difference(wanted.name, name, value, have, Action.KEEP, reason)


def _refusal(wanted: Wanted, name: str, value: str, have: str, reason: str) -> Difference:
    return Difference(wanted.name, name, value, have, Action.REFUSE, reason)


def _was_set(made: Made | None, name: str, have: str) -> bool:
    return made is not None and made.settings.get(name) == have


def _is_stronger(name: str, have: str, value: str) -> bool:
    """Whether what the topic has keeps what the plan wants, and more."""
    measure = _STRENGTH.get(name)
    if measure is None:
        return False
    try:
        return measure(have) >= measure(value)
    except ValueError:
        return False


def _kept(value: str) -> float:
    return float("inf") if int(value) < 0 else int(value)


_STRENGTH: dict[str, Callable[[str], float]] = {
    "retention.ms": _kept,
    "retention.bytes": _kept,
    "flush.messages": lambda value: -int(value),
    "flush.ms": lambda value: -int(value),
    _MIN_INSYNC: int,
    "penstock.durability": lambda value: ("memory", "disk").index(value),
}

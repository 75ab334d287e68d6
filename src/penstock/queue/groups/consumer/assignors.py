"""Who reads which partition: the assignors of the newer protocol. Same input, same output."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from penstock.queue.groups.consumer.partitions import Part, Parts


class Wish(NamedTuple):
    """A member with the topics it wants and the partitions it had."""

    member_id: str
    topics: tuple[UUID, ...]
    had: Parts


Assigned = dict[str, list[Part]]
Assignor = Callable[[list[Wish], dict[UUID, int]], Assigned]


def assign_range(wishes: list[Wish], partitions: dict[UUID, int]) -> Assigned:
    """Neighbouring partitions of each topic, so that the same numbers of several topics meet in one member."""
    given: Assigned = {wish.member_id: [] for wish in wishes}
    for topic_id, count in partitions.items():
        members = sorted(wish.member_id for wish in wishes if topic_id in wish.topics)
        if not members:
            continue
        share, more = divmod(count, len(members))
        first = 0
        for number, member_id in enumerate(members):
            last = first + share + (number < more)
            given[member_id] += [(topic_id, index) for index in range(first, last)]
            first = last
    return given


def assign_uniform(wishes: list[Wish], partitions: dict[UUID, int]) -> Assigned:
    """As even as the subscriptions allow; a member keeps what it had as far as that is even."""
    wishes = sorted(wishes)
    wanting = {topic_id: [wish.member_id for wish in wishes if topic_id in wish.topics] for topic_id in partitions}
    wanted = {topic_id: count for topic_id, count in partitions.items() if wanting[topic_id]}
    given: Assigned = {wish.member_id: [] for wish in wishes}
    owner: dict[Part, str] = {}
    total = sum(wanted.values())
    share, more = divmod(total, len(wishes)) if wishes else (0, 0)
    for wish in wishes:
        kept = [p for p in wish.had if p[0] in wish.topics and p[1] < wanted.get(p[0], 0) and p not in owner]
        quota = share + (more > 0)
        if len(kept) > share and quota > share:
            more -= 1
        for part in kept[:quota]:
            owner[part] = wish.member_id
            given[wish.member_id].append(part)
    for topic_id, count in wanted.items():
        for index in range(count):
            if (topic_id, index) not in owner:
                poorest = min(wanting[topic_id], key=lambda member_id: (len(given[member_id]), member_id))
                given[poorest].append((topic_id, index))
                owner[topic_id, index] = poorest
    _level(given, wanting)
    return given


def _level(given: Assigned, wanting: dict[UUID, list[str]]) -> None:
    """Move single partitions from who has many to who has few, as long as that makes it more even."""
    for _ in range(sum(map(len, given.values()))):
        moved = False
        for rich in sorted(given, key=lambda member_id: (-len(given[member_id]), member_id)):
            for part in reversed(given[rich]):
                poorest = min(wanting[part[0]], key=lambda member_id: (len(given[member_id]), member_id))
                if len(given[rich]) - len(given[poorest]) >= 2:
                    given[rich].remove(part)
                    given[poorest].append(part)
                    moved = True
                    break
            if moved:
                break
        if not moved:
            return


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}
DEFAULT_ASSIGNOR = "uniform"

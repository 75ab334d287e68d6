"""How far a group has come: positions, lag, and who reads what."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.cli.shared.broker_link import (
    ANSWER_TIMEOUT_S,
    NoTopicError,
    Patience,
    RefusedError,
    admin_module,
    answer,
    reason,
)
from penstock.client.offsets import Place, is_unknown, unanswered
from penstock.client.tail_reader import TailReader
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, TopicPartition
    from confluent_kafka.admin import AdminClient

FULL = "GROUP_MAX_SIZE_REACHED"
_HAS_MEMBERS = ("NON_EMPTY_GROUP", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS")
TAIL_MAX = 10_000  # offsets. A group that is further behind has records to read
_TAILS_S = 5.0  # a partition whose tail is not read by then shows its offsets as lag
_SHORT, _UUID_TAIL = 8, 28  # letters of an id that are shown at least; what may be left out of a UUID


class NoGroupError(PenstockError):
    """There is no group of that name."""


class Standing(NamedTuple):
    """A partition as a group sees it; `committed` is None where it has no position."""

    topic: str
    partition: int
    committed: int | None
    start: int
    end: int
    member: str
    is_fully_read: bool = False  # no committed record is left, although the end may lie behind markers

    @property
    def lag(self) -> int | None:
        """Offsets from the position to the end without what retention took; 0 where none of them is a record."""
        if self.committed is None:
            return None
        return 0 if self.is_fully_read else max(0, self.end - max(self.committed, self.start))

    @property
    def tail(self) -> tuple[int, int] | None:
        """The offsets between which a reader may find nothing but markers; None where the lag says enough."""
        if self.committed is None or not 0 < (self.lag or 0) <= TAIL_MAX:
            return None
        return max(self.committed, self.start), self.end

    @property
    def never_read(self) -> int:
        """Records in front of a group that has no position here."""
        return self.end - self.start if self.committed is None else 0


def group_answer(future: Future[Any], group: str, patience: Patience | None = None) -> Any:
    """What the broker answered about `group`; an error in our words."""
    from confluent_kafka import KafkaException

    patience = patience or Patience()
    try:
        return future.result(patience.left_s)
    except KafkaException as error:
        raise group_fault(error.args[0], group) from None
    except TimeoutError:
        raise patience.lost() from None


def group_fault(fault: KafkaError, group: str) -> PenstockError:
    """Why the broker refused something about `group`, in our words."""
    code = fault.name()
    if code == "GROUP_ID_NOT_FOUND":
        return no_group(group)
    if code in _HAS_MEMBERS:
        return has_members(group, code)
    if code == FULL:
        told = f"{group}: the broker keeps no more groups (groups_max): 'penstock groups delete' makes room"
    else:
        told = f"{group}: {reason(fault)}"
    return RefusedError(told, code)


def no_room(client: AdminClient, group: str) -> PenstockError:
    """Why a broker that is full takes in no member of `group`: only whether there are others tells of what it is."""
    try:
        is_shared = bool(describe_group(client, group).members)
    except PenstockError:
        is_shared = False
    if is_shared:
        what = "the broker takes no more members into it (group_members_max, group_bytes_max; Kafka's group.max.size)"
        told = f"{group}: {what}: stop one of them, 'penstock groups describe {group}' names them"
    else:
        what = "the broker has no room for another group (groups_max, group_bytes_max)"
        told = f"{group}: {what}: 'penstock groups delete' makes room, or raise the limit"
    return RefusedError(told, FULL)


def short_ids(ids: list[str]) -> dict[str, str]:
    """Ids of members as people tell them apart: a few letters of each UUID, more where those are the same."""
    longest = max(map(len, ids), default=0)
    cut = next((n for n in range(longest) if len({one[:n] for one in ids}) == len(set(ids))), longest)
    return {one: one[: max(cut, _SHORT, len(one) - _UUID_TAIL)] for one in ids}


def has_members(group: str, code: str = _HAS_MEMBERS[0]) -> PenstockError:
    told = f"{group} has members: stop them first, 'penstock groups describe {group}' names them"
    return RefusedError(told, code)


def no_group(name: str) -> NoGroupError:
    return NoGroupError(f"there is no group {name}: 'penstock groups list' shows what there is")


def describe_group(client: AdminClient, name: str) -> Any:
    """The group as the client library describes it; PenstockError if there is none."""
    found = group_answer(client.describe_consumer_groups([name])[name], name)
    if found.state.name == "DEAD":
        raise no_group(name)
    return found


def positions(client: AdminClient, name: str) -> dict[tuple[str, int], int]:
    """Every committed position of a group."""
    from confluent_kafka import ConsumerGroupTopicPartitions

    found = group_answer(client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name], name)
    return {(place.topic, place.partition): place.offset for place in found.topic_partitions if place.offset >= 0}


def standings(client: AdminClient, broker: KafkaTarget, name: str, members: list[Any]) -> list[Standing]:
    """Every partition of a topic that the group has a position in, or that one of its members reads."""
    owners = {
        (place.topic, place.partition): member.member_id
        for member in members
        for place in (member.assignment.topic_partitions if member.assignment else ())
    }
    committed = positions(client, name)
    topics = sorted({topic for topic, _ in committed})
    beside = {(topic, partition) for topic in topics for partition in _partitions(client, topic)}
    places = sorted(committed.keys() | owners.keys() | beside)
    bounds = _bounds(client, places)
    found = [
        Standing(*place, committed.get(place), *bounds[place], owners.get(place, ""))
        for place in places
        if place in bounds
    ]
    tails = {(part.topic, part.partition): tail for part in found if (tail := part.tail)}
    read = _fully_read(broker, tails) if tails else set()
    return [part._replace(is_fully_read=(part.topic, part.partition) in read) for part in found]


def _fully_read(broker: KafkaTarget, tails: dict[Place, tuple[int, int]]) -> set[Place]:
    reader = TailReader(broker)
    try:
        return reader.fully_read(tails, _TAILS_S)
    finally:
        reader.close()


def _partitions(client: AdminClient, topic: str) -> list[int]:
    """None of a topic that is gone."""
    from confluent_kafka import TopicCollection

    try:
        found = answer(client.describe_topics(TopicCollection([topic]))[topic], topic)
    except NoTopicError:
        return []
    return [partition.id for partition in found.partitions]


def _bounds(client: AdminClient, places: list[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, int]]:
    """Start and end of partitions; those of topics that are gone are left out."""
    from confluent_kafka import KafkaException, TopicPartition

    if not places:
        return {}
    kind = admin_module().OffsetSpec
    asked = [TopicPartition(*place) for place in places]
    starts = client.list_offsets({place: kind.earliest() for place in asked})
    ends = client.list_offsets({place: kind.latest() for place in asked})
    found = {}
    for place in asked:
        try:
            start, end = (_offset(answers, place) for answers in (starts, ends))
        except KafkaException as error:
            if error.args[0].name() == "UNKNOWN_TOPIC_OR_PART":
                continue
            raise
        found[place.topic, place.partition] = (start, end)
    return found


def _offset(answers: dict[TopicPartition, Future[Any]], place: TopicPartition) -> int:
    offset: int = answers[place].result(ANSWER_TIMEOUT_S).offset
    if is_unknown(offset):
        raise unanswered()
    return offset

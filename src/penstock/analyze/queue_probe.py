"""What analyze asks the queue itself, apart from Spark: whether it answers, and how many partitions there are."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # it is its home

from penstock.analyze.failures import AwayError
from penstock.client.factory import admin_client, open_socket
from penstock.client.offsets import is_unknown
from penstock.client.topic_identity import topic_ids
from penstock.errors import PenstockError
from penstock.events.query_order import LATEST
from penstock.kafka.target import KafkaTarget

_GONE = "UNKNOWN_TOPIC_OR_PART"
_ANSWER_S = 5.0
_CONNECT_S = 1.0


class Queue:
    """What analyze needs to know of the queue."""

    def __init__(self, target: KafkaTarget) -> None:
        self.target = target
        self._admin = admin_client(target)
        self._partitions: dict[str, int] = {}

    def partitions(self) -> dict[str, int]:
        """Partitions of every topic; empty while the queue does not answer."""
        try:
            topics = self._admin.list_topics(timeout=_ANSWER_S).topics
        except KafkaException:
            return {}
        self._partitions = {name: len(topic.partitions) for name, topic in topics.items()}
        return self._partitions

    def topic_ids(self, topics: Sequence[str]) -> dict[str, str]:
        """The id of each of these topics that is there; AwayError if the queue does not answer."""
        try:
            return topic_ids(self._admin, topics)
        except PenstockError as error:
            raise AwayError(str(error)) from None

    def ends(self, topics: Sequence[str]) -> dict[tuple[str, int], int]:
        """The next offset of every partition of these topics, without those whose leader does not answer."""
        return self._offsets(topics, OffsetSpec.latest())[0]  # type: ignore[no-untyped-call]

    def ranges(self, topics: Sequence[str]) -> dict[tuple[str, int], tuple[int, int]]:
        """First and next offset of every partition of these topics; AwayError if a leader does not answer."""
        self.partitions()  # some may have been added
        found = []
        for which in (OffsetSpec.earliest(), OffsetSpec.latest()):  # type: ignore[no-untyped-call]
            offsets, unknown = self._offsets(topics, which)
            if unknown:
                topic, partition = unknown[0]
                raise AwayError(f"the leader of {topic}/{partition} does not answer")
            found.append(offsets)
        begins, ends = found
        return {place: (begins[place], ends[place]) for place in begins.keys() & ends.keys()}

    def starts(self, topics: Sequence[str], begin: str) -> dict[str, dict[str, int]]:
        """Where to begin in each partition: LATEST, or the first record at or after a time in ms; AwayError."""
        ends = {place: end for place, (_, end) in self.ranges(topics).items()}
        found: dict[str, dict[str, int]] = {topic: {} for topic in topics}
        times: dict[tuple[str, int], int] = {}
        if begin != LATEST:
            which = OffsetSpec.for_timestamp(int(begin))
            asked = {TopicPartition(*place): which for place in ends}
            try:
                answers = self._admin.list_offsets(asked, request_timeout=_ANSWER_S).items() if asked else ()
                times = {(at.topic, at.partition): answer.result(_ANSWER_S).offset for at, answer in answers}
            except (KafkaException, TimeoutError) as error:
                raise AwayError(f"the queue does not say what stands at that time ({error})") from None
        for (topic, partition), end in ends.items():
            offset = times.get((topic, partition), end)
            found[topic][str(partition)] = offset if offset >= 0 else end
        return found

    def _offsets(
        self, topics: Sequence[str], which: OffsetSpec
    ) -> tuple[dict[tuple[str, int], int], list[tuple[str, int]]]:
        """Offsets of partitions, and the partitions whose leader does not answer."""
        partitions = self._partitions or self.partitions()
        asked = {TopicPartition(name, number): which for name in topics for number in range(partitions.get(name, 0))}
        found, unknown = {}, []
        for place, answer in self._admin.list_offsets(asked, request_timeout=_ANSWER_S).items() if asked else ():
            try:
                offset = answer.result(_ANSWER_S).offset
            except (KafkaException, TimeoutError) as error:
                if isinstance(error, KafkaException) and error.args[0].name() == _GONE:
                    continue
                offset = None
            if offset is None or is_unknown(offset):
                unknown.append((place.topic, place.partition))
            else:
                found[place.topic, place.partition] = offset
        return found, unknown

    def answers(self) -> bool:
        """Whether one of its brokers takes a connection."""
        try:
            open_socket(self.target, _CONNECT_S).close()
        except PenstockError:
            return False
        return True

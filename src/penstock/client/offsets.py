"""What the queue holds: the partitions of a topic and their offsets.

librdkafka gives a negative offset, and no error, where a leader does not answer in time: "unknown", never an end.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeVar

from penstock.client.factory import admin_client
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget

Answer = TypeVar("Answer")
Place = tuple[str, int]  # topic and partition
EARLIEST, LATEST = "earliest", "latest"

_ANSWER_S = 5.0
_RETRY_S, _RETRY_S_MAX = 0.05, 1.0
_GONE = "UNKNOWN_TOPIC_OR_PART"
_NONE_AS_YOUNG = -1  # the answer to a time: every record is older


class NoSuchTopicError(PenstockError):
    """The queue has no topic of that name."""


class _UnknownOffsetError(Exception):
    """The leader of a partition did not answer."""


class Offsets:
    """Asks the queue about offsets without blocking the loop; waits during an outage, the caller sets the deadline."""

    def __init__(self, queue: KafkaTarget) -> None:
        self._kinds: Any = importlib.import_module("confluent_kafka.admin")
        self._client: Any = admin_client(queue)

    async def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic; NoSuchTopicError if there is none."""
        from confluent_kafka import TopicCollection

        async def ask() -> list[int]:
            asked = self._client.describe_topics(TopicCollection([topic]), request_timeout=_ANSWER_S)
            found = await asyncio.wrap_future(asked[topic])
            return sorted(partition.id for partition in found.partitions)

        return await self._until_answered(topic, ask)

    async def at(self, where: str | int, places: Iterable[Place]) -> dict[Place, int]:
        """Offsets at EARLIEST, LATEST or a time in ms; where nothing is as young as that, the end."""
        from confluent_kafka import TopicPartition

        asked = {TopicPartition(*place): place for place in places}
        spec = self._kinds.OffsetSpec
        kind = spec.for_timestamp(where) if isinstance(where, int) else getattr(spec, where)()

        async def ask() -> dict[Place, int]:
            # The same isolation as the readers have: an offset they cannot reach is no end.
            futures = self._client.list_offsets(
                dict.fromkeys(asked, kind),
                isolation_level=importlib.import_module("confluent_kafka").IsolationLevel.READ_COMMITTED,
                request_timeout=_ANSWER_S,
            )
            answers = await asyncio.gather(*map(asyncio.wrap_future, futures.values()))
            found = {asked[place]: int(answer.offset) for place, answer in zip(futures, answers, strict=True)}
            if any(is_unknown(offset, of_time=isinstance(where, int)) for offset in found.values()):
                raise _UnknownOffsetError
            return found

        if not asked:
            return {}
        found = await self._until_answered(next(iter(asked.values()))[0], ask)
        beyond = [place for place, offset in found.items() if offset < 0]
        return {**found, **(await self.at(LATEST, beyond))} if beyond else found

    async def _until_answered(self, topic: str, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        wait_s = _RETRY_S
        while True:
            try:
                return await ask()
            except _UnknownOffsetError:
                pass
            except importlib.import_module("confluent_kafka").KafkaException as error:
                if error.args[0].name() == _GONE:
                    raise NoSuchTopicError(f"the queue has no topic {topic}") from None
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, _RETRY_S_MAX)


def is_unknown(offset: int, *, of_time: bool = False) -> bool:
    """Whether librdkafka does not know this offset; -1 is an answer where a time was asked for."""
    return offset < 0 and not (of_time and offset == _NONE_AS_YOUNG)


def offset_range(consumer: Any, topic: str, partition: int, within_s: float) -> tuple[int, int]:
    """The first and the next offset of a partition; KafkaException if they stay unknown. Blocks."""
    from confluent_kafka import TopicPartition

    low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=within_s) or (-1, -1)
    if is_unknown(low) or is_unknown(high):
        raise unanswered()
    return low, high


def offsets_at_time(
    consumer: Any, topic: str, partitions: Sequence[int], since_ms: int, within_s: float
) -> dict[int, int | None]:
    """The first offset at or after a time, None where all records are older; KafkaException if unknown. Blocks."""
    from confluent_kafka import KafkaException, TopicPartition

    asked = [TopicPartition(topic, partition, since_ms) for partition in partitions]
    found: dict[int, int | None] = {}
    for place in consumer.offsets_for_times(asked, timeout=within_s):
        if place.error is not None:
            raise KafkaException(place.error)
        if is_unknown(place.offset, of_time=True):
            raise unanswered()
        found[place.partition] = place.offset if place.offset >= 0 else None
    return found


def unanswered() -> Exception:
    """The KafkaException for an answer that did not come."""
    from confluent_kafka import KafkaError, KafkaException

    return KafkaException(KafkaError(KafkaError._TIMED_OUT))

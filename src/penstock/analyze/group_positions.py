"""Commits how far each query has come as consumer group penstock.APP.QUERY: every Kafka tool shows its lag."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from penstock.client.factory import admin_client
from penstock.events.headers import query_group
from penstock.events.query_status import Positions
from penstock.kafka.target import KafkaTarget

_ANSWER_S = 10.0


class _Asked(NamedTuple):
    """A commit that was asked for."""

    positions: Positions
    answer: Future[Any]


class GroupPositions:
    """Commits without waiting. Nobody starts from these offsets: a query goes on from its checkpoint."""

    def __init__(self, queue: KafkaTarget, app: str) -> None:
        self._admin = admin_client(queue)
        self._app = app
        self._asked: dict[str, _Asked] = {}

    def commit(self, positions: Mapping[str, Positions]) -> None:
        """Commit what has changed, by query; what failed before is committed now."""
        for query, reached in positions.items():
            asked = self._asked.get(query)
            if not reached or (asked is not None and not asked.answer.done()):
                continue
            if asked is not None and asked.positions == reached and _is_fine(asked.answer):
                continue
            places = [
                TopicPartition(topic, int(partition), offset)
                for topic, parts in reached.items()
                for partition, offset in parts.items()
            ]
            group = ConsumerGroupTopicPartitions(query_group(self._app, query), places)
            (answer,) = self._admin.alter_consumer_group_offsets([group], request_timeout=_ANSWER_S).values()
            self._asked[query] = _Asked(reached, answer)


def _is_fine(answer: Future[Any]) -> bool:
    try:
        return all(place.error is None for place in answer.result(0).topic_partitions)
    except KafkaException:
        return False

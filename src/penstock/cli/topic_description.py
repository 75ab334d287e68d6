"""A topic as the broker describes it: id, partitions, offsets, settings."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from penstock.cli.shared.broker_link import admin_module, answer
from penstock.client.offsets import is_unknown, unanswered

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_URL_SAFE = str.maketrans("+/", "-_")  # as Kafka's own tools print ids


def describe_topic(client: AdminClient, name: str) -> dict[str, Any]:
    """Everything `topics describe` tells about one topic."""
    from confluent_kafka import TopicCollection

    found = answer(client.describe_topics(TopicCollection([name]))[name], name)
    leaders = {partition.id: partition.leader for partition in found.partitions}
    offsets = _offsets(client, name, sorted(leaders))
    return {
        "name": name,
        "id": str(found.topic_id).translate(_URL_SAFE),
        "partitions": [
            {
                "partition": partition,
                "leader": leader.id if (leader := leaders[partition]) is not None else None,
                "start": start,
                "end": end,
            }
            for partition, (start, end) in offsets.items()
        ],
        "settings": _changed_settings(client, name),
    }


def _offsets(client: AdminClient, name: str, partitions: list[int]) -> dict[int, tuple[int, int]]:
    from confluent_kafka import TopicPartition

    kind = admin_module().OffsetSpec
    where = [TopicPartition(name, partition) for partition in partitions]
    starts = client.list_offsets({place: kind.earliest() for place in where})
    ends = client.list_offsets({place: kind.latest() for place in where})
    return {place.partition: (_offset(starts[place], name), _offset(ends[place], name)) for place in where}


def _offset(told: Future[Any], name: str) -> int:
    offset: int = answer(told, name).offset
    if is_unknown(offset):
        raise unanswered()
    return offset


def _changed_settings(client: AdminClient, name: str) -> dict[str, str]:
    kinds = admin_module()
    own = kinds.ConfigSource.DYNAMIC_TOPIC_CONFIG.value  # not what the broker sets for all topics
    resource = kinds.ConfigResource(kinds.ResourceType.TOPIC, name)
    entries = answer(client.describe_configs([resource])[resource], name)
    return {entry.name: entry.value for entry in entries.values() if entry.source == own}

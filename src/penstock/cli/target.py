"""The topic that `penstock produce` writes to, as it is before the first record."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.cli.client import NoTopicError, Patience, admin_module, answer
from penstock.topic_config import TOPIC_SETTINGS

_SIZE = "max.message.bytes"


class Target(NamedTuple):
    """A topic; without partitions while there is none of that name."""

    topic: str
    partitions: list[int]
    batch_bytes_max: int


def look_up(settings: dict[str, Any], topic: str, patience: Patience) -> Target:
    """What the broker says of `topic`, without creating it."""
    from confluent_kafka import TopicCollection
    from confluent_kafka.admin import AdminClient

    client = AdminClient(settings)
    try:
        found = answer(client.describe_topics(TopicCollection([topic]))[topic], topic, patience)
    except NoTopicError:
        return Target(topic, [], int(TOPIC_SETTINGS[_SIZE].default))
    kinds = admin_module()
    resource = kinds.ConfigResource(kinds.ResourceType.TOPIC, topic)
    entries = answer(client.describe_configs([resource])[resource], topic, patience)
    return Target(topic, sorted(partition.id for partition in found.partitions), int(entries[_SIZE].value))

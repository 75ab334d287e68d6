"""Topics made and removed by an ordinary client."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # re-exported without types


def create_topic(address: str, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
    """Create a topic and wait until it is there."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    wanted = NewTopic(name, num_partitions=partitions, replication_factor=1, config=dict(settings or {}))
    admin.create_topics([wanted])[name].result(60)


def delete_topic(address: str, name: str) -> None:
    """Delete a topic and wait until it is gone."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    admin.delete_topics([name])[name].result(60)

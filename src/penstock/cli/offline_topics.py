"""The topics of an app's own queue while no broker serves it: read from the data folder."""

from __future__ import annotations

import base64
from pathlib import Path

from penstock.client.topic_registry import REGISTRY_TOPIC, decode_made
from penstock.config.topic import TOPIC_SETTINGS
from penstock.errors import PeerError
from penstock.kafka.records.record import decode_records
from penstock.plan.topic_differences import Existing, Made
from penstock.ports import Disk
from penstock.queue.core.catalog import Topic
from penstock.queue.log.layout import META_FOLDER, partition_folder
from penstock.queue.offline.read_only_disk import ReadOnlyDisk
from penstock.queue.offline.survey import batches_of, read_catalog


def offline_topics(data: Path) -> tuple[dict[str, Existing], dict[str, Made]]:
    """What the queue below `data` holds, and which of it Penstock made; nothing where no queue was yet."""
    disk = ReadOnlyDisk(str(data / "queue"))
    if not disk.exists(META_FOLDER):
        return {}, {}
    topics = read_catalog(disk).topics
    registry = topics.get(REGISTRY_TOPIC)
    made = decode_made(_values(disk, registry)) if registry is not None else {}
    return {name: _existing(topic) for name, topic in topics.items()}, made


def _existing(topic: Topic) -> Existing:
    # As clients of Kafka write a topic's id.
    topic_id = base64.b64encode(topic.topic_id.bytes).decode().rstrip("=")
    settings = {name: setting.default for name, setting in TOPIC_SETTINGS.items()} | topic.overrides
    return Existing(topic_id, topic.partitions, 1, settings)


def _values(disk: Disk, topic: Topic) -> list[bytes | None]:
    values: list[bytes | None] = []
    for file, position, header in batches_of(disk, partition_folder(topic.topic_id, 0)):
        try:
            values += [record.value for record in decode_records(file.read(position, header.size))]
        except PeerError:
            continue  # its topics count as made by others: they are left as they are
    return values

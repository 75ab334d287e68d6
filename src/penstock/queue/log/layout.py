"""Names of files below the data folder."""

from __future__ import annotations

from uuid import UUID

META_FOLDER = "meta"
GROUPS_FOLDER = "groups"
TRANSACTIONS_FOLDER = "transactions"
TOPICS_FOLDER = "topics"
LOG, INDEX, PRODUCERS, TORN = ".log", ".index", ".producers", ".torn"
WITNESS = "durable"


def topic_folder(topic_id: UUID) -> str:
    """Named by id: a topic's name never reaches the file system."""
    return f"{TOPICS_FOLDER}/{topic_id}"


def partition_folder(topic_id: UUID, partition: int) -> str:
    return f"{topic_folder(topic_id)}/{partition}"


def file_name(base_offset: int, ending: str) -> str:
    """As Kafka names segments, so that its own tools read them."""
    return f"{base_offset:020d}{ending}"


def base_offsets(names: list[str], ending: str) -> list[int]:
    """Offsets of the files with this ending, ascending."""
    stems = (name[: -len(ending)] for name in names if name.endswith(ending))
    return sorted(int(stem) for stem in stems if stem.isdigit())

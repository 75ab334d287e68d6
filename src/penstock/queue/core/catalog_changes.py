"""Durable changes of the catalog: one record each in the metadata log."""

from __future__ import annotations

from uuid import UUID

import msgspec

from penstock.errors import StorageError


class ClusterNamed(msgspec.Struct, frozen=True, tag="cluster"):
    """The first record of all."""

    cluster_id: str


class TopicCreated(msgspec.Struct, frozen=True, tag="topic"):
    name: str
    topic_id: UUID
    partitions: int
    config: dict[str, str]


class TopicDeleted(msgspec.Struct, frozen=True, tag="gone"):
    topic_id: UUID


class PartitionsAdded(msgspec.Struct, frozen=True, tag="partitions"):
    """The topic has `partitions` of them now."""

    topic_id: UUID
    partitions: int


class TopicConfigured(msgspec.Struct, frozen=True, tag="config"):
    """The settings of the topic, all of them."""

    topic_id: UUID
    config: dict[str, str]


class StartMoved(msgspec.Struct, frozen=True, tag="start"):
    """Records of a partition below `offset` were deleted on request."""

    topic_id: UUID
    partition: int
    offset: int


class ProducerIdsReserved(msgspec.Struct, frozen=True, tag="pids"):
    """Producer ids below `below` may be in use."""

    below: int


class Restarted(msgspec.Struct, frozen=True, tag="snapshot"):
    """A whole catalog follows in this batch: forget what was before."""


Change = (
    ClusterNamed
    | TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | TopicConfigured
    | StartMoved
    | ProducerIdsReserved
    | Restarted
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Change] = msgspec.json.Decoder(Change)


def encode_change(change: Change) -> bytes:
    return _encoder.encode(change)


def decode_change(data: bytes) -> Change:
    """StorageError when the record is of no kind this version knows."""
    try:
        return _decoder.decode(data)
    except msgspec.DecodeError as wrong:
        raise StorageError(f"the metadata log holds a record that cannot be read: {wrong}") from None

"""What Kafka's consumers tell each other inside of the classic protocol, as far as a broker has to know."""

from __future__ import annotations

from penstock.errors import PeerError
from penstock.kafka.wire.message import decode_request, encode
from penstock.kafka.wire.messages.consumer_protocol import (
    AssignedPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from penstock.kafka.wire.types import Reader


def _version(raw: bytes) -> int:
    """A newer version is read as the newest known. PeerError if it is none."""
    version = Reader(raw).int16()
    first, last = ConsumerProtocolSubscription.versions
    if version < first:
        raise PeerError(f"a consumer protocol of version {version}")
    return min(version, last)


def decode_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """What a consumer wants, and has. PeerError if it cannot be read."""
    return decode_request(ConsumerProtocolSubscription, metadata, _version(metadata), 2)


def subscribed_topics(metadata: bytes) -> list[str] | None:
    """The topics of a subscription; None if it cannot be read."""
    try:
        return decode_subscription(metadata).topics
    except PeerError:
        return None


def decode_assignment(raw: bytes) -> ConsumerProtocolAssignment:
    """What a consumer was given. PeerError if it cannot be read."""
    return decode_request(ConsumerProtocolAssignment, raw, _version(raw), 2)


def encode_assignment(given: list[tuple[str, list[int]]], subscription: bytes) -> bytes:
    """What a consumer gets, in the version of its subscription."""
    version = _version(subscription)
    assigned = [AssignedPartition(topic, partitions) for topic, partitions in given]
    return version.to_bytes(2, "big") + encode(ConsumerProtocolAssignment(assigned), version)

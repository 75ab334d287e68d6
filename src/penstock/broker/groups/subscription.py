"""What Kafka's consumers tell each other inside of the classic protocol, as far as a broker has to know."""

from __future__ import annotations

from penstock.errors import PeerError
from penstock.wire.message import decode_request
from penstock.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from penstock.wire.types import Reader


def decode_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """A consumer's subscription; a newer version is read as the newest known. PeerError if it is none."""
    version = Reader(metadata).int16()
    first, last = ConsumerProtocolSubscription.versions
    if version < first:
        raise PeerError(f"a subscription of version {version}")
    return decode_request(ConsumerProtocolSubscription, metadata, min(version, last), 2)


def subscribed_topics(metadata: bytes) -> list[str] | None:
    """The topics of a subscription; None if it cannot be read."""
    try:
        return decode_subscription(metadata).topics
    except PeerError:
        return None

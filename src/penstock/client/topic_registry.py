"""The topic `penstock.topics`: which topics Penstock made, so that those of others stay as they are."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from confluent_kafka import KafkaException, Producer

from penstock.client.factory import client_settings
from penstock.client.lookup import values_to_end
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget
from penstock.plan.topic_differences import Made
from penstock.plan.topics import Wanted

REGISTRY_TOPIC = "penstock.topics"
_ANSWER_S = 30.0
_made = msgspec.json.Decoder(Made)


def registry_topic(replicas: int) -> Wanted:
    """The registry itself. Its records are small and count for as long as the topics exist."""
    return Wanted(REGISTRY_TOPIC, 1, replicas, {"retention.ms": "-1"})


def decode_made(values: Iterable[bytes | None]) -> dict[str, Made]:
    """The last record of each topic, by the topic's name."""
    found = {}
    for value in values:
        try:
            made = _made.decode(value or b"")
        except msgspec.DecodeError:
            continue  # any client may write there: such a record vouches for no topic
        found[made.topic] = made
    return found


def read_registry(queue: KafkaTarget) -> dict[str, Made]:
    """What the registry says; it must exist. PenstockError if the queue does not answer."""
    try:
        return decode_made(values_to_end(queue, REGISTRY_TOPIC, _ANSWER_S))
    except KafkaException as error:
        raise PenstockError(f"the queue does not answer ({error.args[0].str()})") from None


def write_registry(queue: KafkaTarget, made: Iterable[Made]) -> None:
    """Add records; returns when they are acknowledged, PenstockError if one is not."""
    failed: list[str] = []
    settings = client_settings(queue) | {"message.timeout.ms": int(_ANSWER_S * 1000), "linger.ms": 0}
    producer = Producer(settings)
    for record in made:
        producer.produce(
            REGISTRY_TOPIC,
            msgspec.json.encode(record),
            key=record.topic,
            on_delivery=lambda error, _: failed.append(error.str()) if error is not None else None,
        )
    left = producer.flush(_ANSWER_S)
    if left or failed:
        why = failed[0] if failed else "no answer in time"
        raise PenstockError(f"the topic {REGISTRY_TOPIC} could not be written ({why})")

"""Answers as plain values, without the fields that two brokers cannot share."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from penstock.kafka.wire.message import Message


def comparable(answer: Message, ignoring: Collection[str]) -> object:
    """The answer as dicts and lists; `ignoring` names fields by path, such as `topics.topic_id`."""
    return _plain(answer, "", frozenset(ignoring))


def _plain(value: object, path: str, ignoring: frozenset[str]) -> object:
    if dataclasses.is_dataclass(value):
        fields = ((field.name, f"{path}.{field.name}".lstrip(".")) for field in dataclasses.fields(value))
        return {name: _plain(getattr(value, name), at, ignoring) for name, at in fields if at not in ignoring}
    if isinstance(value, list):
        elements = [_plain(element, path, ignoring) for element in value]
        # Kafka answers in the order of its hash maps, which is no promise.
        return sorted(elements, key=repr) if elements and isinstance(elements[0], dict) else elements
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return value

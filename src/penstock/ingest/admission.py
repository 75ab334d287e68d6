"""What an event of one topic must be, and what is read from it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from penstock.event import id_fault
from penstock.plan import TopicPlan
from penstock.schema import json_text

Texts = Callable[[Any], list[str | None]]


class RefusedError(ValueError):
    """This is no event of the topic; the message names the field."""


class Admitted(NamedTuple):
    """What the queue must know of an event besides its bytes."""

    key: bytes | None
    id: str | None


class Admission:
    """The verdict of one topic on events."""

    def __init__(self, topic: TopicPlan, event_bytes_max: int) -> None:
        self.topic = topic.name
        self.event_bytes_max = event_bytes_max
        self._identity = topic.identity
        self._keyed = bool(topic.key)
        if topic.schema is not None:
            self._decode = topic.schema.decode
            self._key_texts = topic.schema.texts(topic.key)
            self._id_texts = topic.schema.texts(topic.identity)
        else:
            self._decode = _decode_object
            self._key_texts = _texts_of_object(topic.key)
            self._id_texts = _texts_of_object(())

    def admit(self, value: bytes) -> Admitted:
        """Key and identity of an event; RefusedError if it is none."""
        if len(value) > self.event_bytes_max:
            raise RefusedError(f"an event has at most {self.event_bytes_max} bytes, this one has {len(value)}")
        if not value.isascii():
            _check_utf8(value)
        try:
            event = self._decode(value)
        except ValueError as wrong:
            raise RefusedError(str(wrong)) from None
        return Admitted(self._key(event) if self._keyed else None, self._id(event) if self._identity else None)

    def _key(self, event: Any) -> bytes | None:
        parts = self._key_texts(event)
        if not any(part is not None for part in parts):
            return None
        return "|".join([part or "" for part in parts]).encode()

    def _id(self, event: Any) -> str:
        parts = self._id_texts(event)
        for name, part in zip(self._identity, parts, strict=True):
            if part is None:
                raise RefusedError(f"field {name} is missing: it is the identity of an event of {self.topic}")
        id = "|".join([part or "" for part in parts])
        if fault := id_fault(id):
            raise RefusedError(f"field {self._identity[0]}: {fault}")
        return id


def _check_utf8(value: bytes) -> None:
    # Fields that no schema names are not decoded, and would reach readers as they are.
    try:
        value.decode()
    except UnicodeDecodeError as wrong:
        raise RefusedError(f"not UTF-8: byte {wrong.start} is {value[wrong.start]:#04x}") from None


_object = msgspec.json.Decoder(dict[str, Any])


def _decode_object(value: bytes | memoryview) -> dict[str, Any]:
    try:
        return _object.decode(value)
    except msgspec.ValidationError:
        raise ValueError("expected object") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise ValueError(f"not JSON: {wrong}") from None
    except RecursionError:
        raise ValueError("not JSON that can be read: nested too deeply") from None


def _texts_of_object(names: tuple[str, ...]) -> Texts:
    def pick(event: dict[str, Any]) -> list[str | None]:
        return [None if event.get(name) is None else json_text(event[name]) for name in names]

    return pick

"""What an event of one topic must be, and what is read from it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from penstock.events.headers import EVENT_LEAD_MS, ID_LENGTH_MAX, id_fault, join_key, lead_fault
from penstock.events.schema import json_text
from penstock.plan.plan import TopicPlan

Text = Callable[[Any], str | None]


class RefusedError(ValueError):
    """This is no event of the topic; the message names the field."""

    status = 400


class TooLargeError(RefusedError):
    """The event is larger than the edge takes."""

    status = 413


class Admission:
    """The verdict of one topic on events."""

    def __init__(self, topic: TopicPlan, event_bytes_max: int) -> None:
        self.topic = topic.name
        self.event_bytes_max = event_bytes_max
        schema = topic.schema
        self._decode: Callable[[bytes], Any] = _decode_object if schema is None else schema.decode
        text = _text_of_object if schema is None else schema.text
        self._key = [text(name) for name in topic.key]
        self.has_identity = bool(topic.identity)
        self._identity = [(name, text(name)) for name in topic.identity]
        self._event_time = topic.event_time or ""
        self._moment = schema.part(topic.event_time) if schema is not None and topic.event_time else None

    def admit(self, value: bytes, now_ms: int) -> tuple[bytes | None, str | None]:
        """Key and identity of an event that came now, as far as its topic has them; RefusedError if it is none."""
        if len(value) > self.event_bytes_max:
            raise TooLargeError(f"an event has at most {self.event_bytes_max} bytes, this one has {len(value)}")
        if not value.isascii():
            _check_utf8(value)
        try:
            event = self._decode(value)
        except ValueError as wrong:
            raise RefusedError(str(wrong)) from None
        if self._moment is not None and _leads(self._moment(event), now_ms):
            raise RefusedError(lead_fault(self._event_time))
        return _joined(self._key, event) if self._key else None, self._id(event) if self._identity else None

    def _id(self, event: Any) -> str:
        parts = [text(event) for _, text in self._identity]
        if None in parts:
            name = self._identity[parts.index(None)][0]
            raise RefusedError(f"field {name} is missing: it is the identity of an event of {self.topic}")
        id = parts[0] or "" if len(parts) == 1 else join_key(parts)
        # Nearly every id is plainly fine, and the whole check costs as much as decoding the event.
        if (not id.isprintable() or not 0 < len(id) <= ID_LENGTH_MAX) and (fault := id_fault(id)):
            raise RefusedError(f"field {self._identity[0][0]}: {fault}")
        return id


def _leads(moment: Any, now_ms: int) -> bool:
    if not isinstance(moment, datetime):  # absent, or null
        return False
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    ahead_ms: float = moment.timestamp() * 1000 - now_ms
    return ahead_ms > EVENT_LEAD_MS


def _joined(columns: list[Text], event: Any) -> bytes | None:
    first = columns[0](event)
    if len(columns) == 1:
        return None if first is None else first.encode()
    parts = [first, *(column(event) for column in columns[1:])]
    return None if not any(part is not None for part in parts) else join_key(parts).encode()


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


def _text_of_object(name: str) -> Text:
    def pick(event: dict[str, Any]) -> str | None:
        return None if event.get(name) is None else json_text(event[name])

    return pick

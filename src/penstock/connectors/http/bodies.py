"""From a body that is taken as a whole to its events. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from penstock.events.cloudevents import CloudEvent, CloudEventError, read_binary, read_structured
from penstock.events.event import Event
from penstock.events.formats import Form
from penstock.events.headers import ID_LENGTH_MAX, id_fault

GIVEN_ID = b"penstock-id"
_items = msgspec.json.Decoder(list[msgspec.Raw])
_SPACE = b" \t\r\n"


class BadBodyError(ValueError):
    """What is wrong with a body, and with which of its events."""

    def __init__(self, reason: str, event: int | None = None, status: int = 400) -> None:
        super().__init__(reason)
        self.reason = reason
        self.event = event
        self.status = status


def read_events(
    form: Form, body: bytes, headers: Iterable[tuple[bytes, bytes]], events_max: int
) -> tuple[list[Event], bool]:
    """The events of a body, and whether it was a list of them; BadBodyError if it cannot be read."""
    if form is Form.JSON:
        if body.lstrip(_SPACE)[:1] == b"[":
            return [Event(bytes(item)) for item in _list(body, events_max)], True
        return [Event(body, id=_given_id(headers) or "")], False
    if form is Form.CE_BATCH:
        found = []
        for number, item in enumerate(_list(body, events_max)):
            try:
                found.append(_event_of(read_structured(bytes(item)), None))
            except (CloudEventError, BadBodyError) as wrong:
                raise BadBodyError(str(wrong), number) from None
        return found, True
    try:
        event = read_binary(headers, body) if form is Form.CE_BINARY else read_structured(body)
    except CloudEventError as wrong:
        raise BadBodyError(str(wrong)) from None
    return [_event_of(event, _given_id(headers))], False


def _list(body: bytes, events_max: int) -> list[msgspec.Raw]:
    try:
        items = _items.decode(body)
    except msgspec.ValidationError:
        raise BadBodyError("expected an array of events") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise BadBodyError(f"not JSON: {wrong}") from None
    except RecursionError:
        raise BadBodyError("not JSON that can be read: nested too deeply") from None
    if not items:
        raise BadBodyError("the array holds no event")
    if len(items) > events_max:
        raise BadBodyError(
            f"an array holds at most {events_max} events, this one {len(items)}: send parts, or NDJSON", status=413
        )
    return items


def _event_of(event: CloudEvent, given: str | None) -> Event:
    if given is None and (fault := id_fault(event.id)):
        raise BadBodyError(f"attribute id: {fault}")
    return Event(event.value, id=given or event.id, headers=event.headers)


def _given_id(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    for name, value in headers:
        if name == GIVEN_ID:
            try:
                id = value[: ID_LENGTH_MAX * 4 + 1].decode()
            except UnicodeDecodeError:
                raise BadBodyError("header Penstock-Id is not UTF-8") from None
            if fault := id_fault(id):
                raise BadBodyError(f"header Penstock-Id: {fault}")
            return id
    return None

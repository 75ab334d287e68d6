"""CloudEvents 1.0: from the three forms of its HTTP binding to the headers of its Kafka binding. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import msgspec

from penstock.events.formats import is_json, media_type
from penstock.events.headers import Headers

REQUIRED = ("specversion", "id", "source", "type")
CONTENT_TYPE = "datacontenttype"
ATTRIBUTES_MAX = 64
ATTRIBUTE_BYTES_MAX = 8 * 1024
_NAME = re.compile(r"[a-z0-9]{1,64}")
_envelope = msgspec.json.Decoder(dict[str, msgspec.Raw])


class CloudEvent(NamedTuple):
    """One event as the sender named it, and the attributes as headers of a record."""

    id: str
    value: bytes
    headers: Headers


class CloudEventError(ValueError):
    """This is no CloudEvent 1.0 with JSON data; the message names the attribute."""


def read_binary(headers: Iterable[tuple[bytes, bytes]], body: bytes) -> CloudEvent:
    """The event of a request in binary mode: attributes in ce-* headers, data in the body."""
    attributes: dict[str, Any] = {}
    for name, value in headers:
        if name.startswith(b"ce-"):
            attributes[name[3:].decode("latin-1").lower()] = _header_text(name, value)
        elif name == b"content-type":
            attributes[CONTENT_TYPE] = value.decode("latin-1")
    return _cloud_event(attributes, body)


def read_structured(text: bytes) -> CloudEvent:
    """The event of one JSON object that holds attributes and data."""
    try:
        fields = _envelope.decode(text)
    except msgspec.ValidationError:
        raise CloudEventError("a CloudEvent is a JSON object") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
        raise CloudEventError(f"not JSON: {wrong}") from None
    except RecursionError:
        raise CloudEventError("not JSON that can be read: nested too deeply") from None
    value = _data(fields)
    attributes: dict[str, Any] = {}
    for name, raw in fields.items():
        try:
            attributes[name] = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise CloudEventError(f"attribute {name[:64]} cannot be read") from None
    return _cloud_event(attributes, value)


def _data(fields: dict[str, msgspec.Raw]) -> bytes:
    plain, encoded = fields.pop("data", None), fields.pop("data_base64", None)
    if plain is not None and encoded is not None:
        raise CloudEventError("data and data_base64 cannot both be there")
    if encoded is not None:
        try:
            return base64.b64decode(msgspec.json.decode(encoded, type=str), validate=True)
        except (msgspec.ValidationError, binascii.Error, ValueError):
            raise CloudEventError("data_base64 is no base64 text") from None
    if plain is None:
        raise CloudEventError("data is missing: it is the event")
    return bytes(plain)


def _cloud_event(attributes: Mapping[str, Any], value: bytes) -> CloudEvent:
    for name in REQUIRED:
        if not isinstance(attributes.get(name), str) or not attributes[name]:
            raise CloudEventError(f"attribute {name} is missing")
    if attributes["specversion"] != "1.0":
        raise CloudEventError(f"attribute specversion must be 1.0, not {str(attributes['specversion'])[:20]!r}")
    if not is_json(media_type(str(attributes.get(CONTENT_TYPE, "application/json"))).name):
        raise CloudEventError(f"attribute {CONTENT_TYPE} must be JSON, not {str(attributes[CONTENT_TYPE])[:64]!r}")
    if len(attributes) > ATTRIBUTES_MAX:
        raise CloudEventError(f"an event has at most {ATTRIBUTES_MAX} attributes")
    headers: Headers = []
    for name, attribute in attributes.items():
        if attribute is None:
            continue
        if not _NAME.fullmatch(name):
            raise CloudEventError(f"attribute {name[:64]!r}: a name has only lower-case letters and digits")
        kept = "content-type" if name == CONTENT_TYPE else f"ce_{name}"
        headers.append((kept, _attribute_text(name, attribute)))
    return CloudEvent(attributes["id"], value, headers)


def _attribute_text(name: str, attribute: Any) -> bytes:
    if isinstance(attribute, bool):
        text = b"true" if attribute else b"false"
    elif isinstance(attribute, str | int):
        text = str(attribute).encode()
    else:
        raise CloudEventError(f"attribute {name}: expected text, whole number or boolean")
    if len(text) > ATTRIBUTE_BYTES_MAX:
        raise CloudEventError(f"attribute {name} has more than {ATTRIBUTE_BYTES_MAX} bytes")
    return text


def _header_text(name: bytes, value: bytes) -> str:
    """A ce-* header's value: percent-encoded UTF-8 (section 3.1.3.2 of the HTTP binding)."""
    try:
        return unquote_to_bytes(value).decode()
    except UnicodeDecodeError:
        raise CloudEventError(f"header {name.decode('latin-1')[:64]} is not UTF-8") from None

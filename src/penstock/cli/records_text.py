"""Records as text: one a line, whatever bytes they hold."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

SHOWN = ("partition", "offset", "timestamp", "key", "headers")

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Control characters could end the line or command the terminal; \udc80 to \udcff are bytes that are not UTF-8.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\udc80-\udcff]")
_NOT_TAB = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0a-\x1f"))


class Shown(NamedTuple):
    """A record as a consumer got it."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int | None
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def shown_of(message: Any) -> Shown:
    """The record in a message of the client library that is no error."""
    kind, stamp = message.timestamp()
    return Shown(
        topic=message.topic(),
        partition=message.partition(),
        offset=message.offset(),
        timestamp_ms=stamp if kind else None,
        key=message.key(),
        value=message.value(),
        headers=message.headers() or [],
    )


def escaped(data: bytes | None, *, keep_tabs: bool = False) -> str:
    """The bytes as text on one line; what is not printable UTF-8 as escapes, nothing as 'null'."""
    if data is None:
        return "null"
    text = data.decode("utf-8", "surrogateescape")
    return (_NOT_TAB if keep_tabs else _UNSAFE).sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    letter = match[0]
    code = ord(letter)
    if code >= 0xDC80 and code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return _ESCAPES.get(letter) or (f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}")


def json_bytes(data: bytes | None) -> str | dict[str, str] | None:
    """Text as it is, other bytes as {"base64": ...}, nothing as null."""
    if data is None:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def iso_time(timestamp_ms: int | None) -> str | None:
    """ISO 8601 in UTC with milliseconds."""
    if timestamp_ms is None:
        return None
    try:
        moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None  # a producer may claim any number
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def as_json(record: Shown) -> dict[str, Any]:
    """The whole record for programs."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": iso_time(record.timestamp_ms),
        "timestamp_ms": record.timestamp_ms,
        "key": json_bytes(record.key),
        "value": json_bytes(record.value),
        "headers": [{"name": name, "value": json_bytes(value)} for name, value in record.headers],
    }


def as_line(record: Shown, shown: Sequence[str]) -> str:
    """The columns asked for, in the order of SHOWN, then the value; tabs between them."""
    columns = [_column(record, name) for name in SHOWN if name in shown]
    return "\t".join([*columns, escaped(record.value, keep_tabs=True)])


def _column(record: Shown, name: str) -> str:
    match name:
        case "key":
            return escaped(record.key)
        case "timestamp":
            return iso_time(record.timestamp_ms) or str(record.timestamp_ms)
        case "headers":
            return ",".join(f"{escaped(n.encode())}={escaped(v)}" for n, v in record.headers) or "-"
        case _:
            return str(getattr(record, name))

"""Records as text: one a line, whatever bytes they hold."""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click

from penstock.client.record import Record

SHOWN = ("partition", "offset", "timestamp", "key", "headers")

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Control characters could end the line or command the terminal; \udc80 to \udcff are bytes that are not UTF-8.
_UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\udc80-\udcff]")
_NOT_TAB = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0a-\x1f"))


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


def as_json(record: Record) -> dict[str, Any]:
    """The whole record for programs."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": iso_time(record.known_timestamp_ms),
        "timestamp_ms": record.known_timestamp_ms,
        "key": json_bytes(record.key),
        "value": json_bytes(record.value),
        "headers": [{"name": name, "value": json_bytes(value)} for name, value in record.headers],
    }


def as_line(record: Record, shown: Sequence[str]) -> str:
    """The columns asked for, in the order of SHOWN, then the value; tabs between them."""
    columns = [_column(record, name) for name in SHOWN if name in shown]
    return "\t".join([*columns, escaped(record.value, keep_tabs=True)])


def _column(record: Record, name: str) -> str:
    match name:
        case "key":
            return escaped(record.key)
        case "timestamp":
            return iso_time(record.known_timestamp_ms) or str(record.known_timestamp_ms)
        case "headers":
            return ",".join(f"{escaped(n.encode())}={escaped(v)}" for n, v in record.headers) or "-"
        case _:
            return str(getattr(record, name))


COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "bright_red", "bright_cyan", "bright_yellow")
_KEY_WIDTH_MAX = 24
_MORE = "…"


class Lines:
    """Remembers how wide topics and keys were, so that lines stand below each other; each topic has its colour."""

    def __init__(self, width: int | None, coloured: bool) -> None:
        """`width` is that of the terminal; None: lines are as long as they are."""
        self._width = width
        self._coloured = coloured
        self._colours: dict[str, str] = {}
        self._topic_width = self._key_width = 0

    def line(self, record: Record) -> str:
        topic = f"{record.topic}/{record.partition}"
        key = "" if record.key is None else clipped(escaped(record.key), _KEY_WIDTH_MAX)
        self._topic_width = max(self._topic_width, len(topic))
        self._key_width = max(self._key_width, cells(key))
        time, value = local_time(record.known_timestamp_ms), escaped(record.value)
        head = [topic.ljust(self._topic_width), key + " " * (self._key_width - cells(key))]
        if self._width is not None:
            taken = len(time) + sum(map(cells, head)) + 2 * len(head) + 2
            value = clipped(value, max(8, self._width - taken))
        if self._coloured:
            time = click.style(time, dim=True)
            head[0] = click.style(head[0], fg=self._colour(record.topic))
            head[1] = click.style(head[1], bold=True)
        return "  ".join([time, *head, value]).rstrip()

    def _colour(self, topic: str) -> str:
        return self._colours.setdefault(topic, COLOURS[len(self._colours) % len(COLOURS)])


def clipped(text: str, width: int) -> str:
    """The beginning of a text that fits into so many cells of a terminal."""
    if len(text) <= width and cells(text) <= width:
        return text
    room = width - len(_MORE)
    for at, letter in enumerate(text):
        room -= cells(letter)
        if room < 0:
            return text[:at] + _MORE
    return text


def cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def local_time(timestamp_ms: int | None) -> str:
    """HH:MM:SS.mmm here; dashes if the record has none that makes sense."""
    try:
        moment = datetime.fromtimestamp((timestamp_ms or 0) / 1000).astimezone()
    except (ValueError, OverflowError, OSError):
        moment = None
    if not timestamp_ms or timestamp_ms < 0 or moment is None:
        return "--:--:--.---"
    return moment.strftime("%H:%M:%S.") + f"{timestamp_ms % 1000:03}"

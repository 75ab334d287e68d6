"""What a live client reads: one JSON object a record, and notices about the stream itself."""

from __future__ import annotations

import base64
from functools import cached_property
from typing import Any

import msgspec

from penstock.client.record import Record
from penstock.events.headers import ID, QUERY, SOURCE, TIME

_text = msgspec.json.Encoder().encode
_skip = msgspec.json.Decoder(msgspec.Raw).decode


class Body:
    """A record as JSON but for the token, which differs between streams; encoded when somebody wants it."""

    def __init__(self, record: Record) -> None:
        self.record = record

    @property
    def size(self) -> int:
        """Bytes that it keeps in memory, but for a constant."""
        return len(self.record.value or b"") + len(self.record.key or b"")

    @cached_property
    def head(self) -> bytes:
        """What stands before the token."""
        record = self.record
        headers = dict(reversed(record.headers))
        id, time_ms = _word(headers.get(ID)), _number(headers.get(TIME))
        known: dict[str, Any] = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "id": f"{record.topic}/{record.partition}/{record.offset}" if id is None else id,
            "time_ms": record.timestamp_ms if time_ms is None else time_ms,
            "stored_ms": record.timestamp_ms,
            "key": _word(record.key),
        }
        for name, header in (("source", SOURCE), ("query", QUERY)):
            if header in headers:
                known[name] = _word(headers[header])
        return _text(known)[:-1]

    @cached_property
    def tail(self) -> bytes:
        """What stands behind it."""
        return _value(self.record.value)


class Message:
    """One thing to send, encoded once for everybody who gets it. `token` is where a client stands after it."""

    def __init__(self, event: str, json: bytes, token: str, key: bytes | None = None) -> None:
        self.event = event
        self.json = json
        self.token = token
        self.key = key

    @cached_property
    def sse(self) -> bytes:
        """As a server-sent event."""
        data = self.json
        if b"\n" in data or b"\r" in data:  # white space between the tokens of the JSON as it was sent
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
        id = f"id: {self.token}\n" if self.token else ""
        return b"%sevent: %s\ndata: %s\n\n" % (id.encode(), self.event.encode(), data)

    @cached_property
    def chunk(self) -> bytes:
        """The event as a chunk of an HTTP response (RFC 9112, section 7.1)."""
        return b"%x\r\n%s\r\n" % (len(self.sse), self.sse)

    @cached_property
    def text(self) -> str:
        """As the text of a WebSocket message."""
        return self.json.decode()

    @cached_property
    def frame(self) -> bytes:
        """As a whole frame of a WebSocket server (RFC 6455, section 5.2): one text, not masked."""
        size = len(self.json)
        if size < 126:
            return b"\x81" + size.to_bytes(1, "big") + self.json
        if size < 65_536:
            return b"\x81\x7e" + size.to_bytes(2, "big") + self.json
        return b"\x81\x7f" + size.to_bytes(8, "big") + self.json


def record_message(body: Body, token: str) -> Message:
    """A record in one stream."""
    resume = b',"resume":"%s"' % token.encode() if token else b""
    return Message(body.record.topic, body.head + resume + body.tail, token, body.record.key)


def notice(event: str, token: str, **facts: object) -> Message:
    """Something about the stream: its name begins with penstock., as no topic of a user does."""
    name = f"penstock.{event}"
    return Message(name, _text({"event": name, **facts, **({"resume": token} if token else {})}), token)


def _word(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")


def _number(data: bytes | None) -> int | None:
    return int(data) if data is not None and data.isdigit() else None


def _value(data: bytes | None) -> bytes:
    """The value verbatim where it is JSON; else as text, or as base64."""
    if data is None:
        return b',"value":null}'
    try:
        text = data.decode()
        _skip(data)
    except UnicodeDecodeError:
        return b',"base64":"%s"}' % base64.b64encode(data)
    except (msgspec.DecodeError, RecursionError):
        return b',"text":%s}' % _text(text)
    return b',"value":%s}' % data

"""Server-sent events (HTML Living Standard, section 9.2) over plain ASGI."""

from __future__ import annotations

import asyncio

from starlette.types import Receive, Scope, Send

from penstock.connect.asgi import TRANSPORT
from penstock.connect.problem import PROBLEM, problem
from penstock.connectors.live.envelope import Message
from penstock.connectors.live.hub import RefusedError

UNSENT_BYTES_MAX = 64 * 1024  # of one client in this process; the rest waits in its backlog
_RETRY_MS = 1_000  # a browser waits this long before it comes back
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class SseWire:
    """One response that goes on."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._raw = send
        self._transport = transport_of(scope)

    async def refuse(self, refused: RefusedError) -> None:
        await refuse(self._raw, refused)

    async def open(self) -> None:
        await self._raw({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        # Not all at once after a restart: the port of a client is as good as chance.
        _, port = self._scope.get("client") or ("", 0)
        await self._write(b"retry: %d\n\n" % (_RETRY_MS + port % _RETRY_MS))

    async def send(self, messages: list[Message]) -> None:
        await self._write(messages[0].sse if len(messages) == 1 else b"".join([message.sse for message in messages]))

    async def beat(self, token: str) -> None:
        # An event without data is not shown to anybody, but its id is remembered.
        await self._write(f": beat\nid: {token}\n\n".encode() if token else b": beat\n\n")

    async def finish(self, reason: str) -> None:
        await self._raw({"type": "http.response.body", "body": b"", "more_body": False})

    async def watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def write_now(self, message: Message) -> bool:
        return write_now(self._transport, message.chunk)

    def abort(self) -> None:
        abort(self._transport)

    async def _write(self, data: bytes) -> None:
        await self._raw({"type": "http.response.body", "body": data, "more_body": True})


async def refuse(send: Send, refused: RefusedError, kind: str = "http.response") -> None:
    """Answer a request with a status and a sentence."""
    body = problem(refused.status, refused.reason)
    headers = [PROBLEM, (b"content-length", b"%d" % len(body))]
    if refused.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % refused.retry_after_s))
    await send({"type": f"{kind}.start", "status": refused.status, "headers": headers})
    await send({"type": f"{kind}.body", "body": body})


def transport_of(scope: Scope) -> asyncio.Transport | None:
    """The connection itself, where the server lets us have it."""
    found: asyncio.Transport | None = scope.get("state", {}).get(TRANSPORT)
    return found


def write_now(transport: asyncio.Transport | None, data: bytes) -> bool:
    """Write past the server, whose ceremony costs more than all the rest; False if the client must be waited for."""
    if transport is None or transport.is_closing() or transport.get_write_buffer_size() > UNSENT_BYTES_MAX:
        return False
    transport.write(data)
    return True


def abort(transport: asyncio.Transport | None) -> None:
    """Close the connection at once: a close would wait for a slow client to take what is left."""
    if transport is not None:
        transport.abort()

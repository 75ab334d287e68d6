"""The little of ASGI that the doors need: a body within bounds, an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from penstock.connect.problem import PROBLEM
from penstock.connect.responses import JSON, Answer

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

TRANSPORT = "penstock.transport"  # in the scope's state: the connection of the request
RENEW = "penstock.renew"  # in the scope's state: a call that gives a request which comes on well its deadline anew
LATE = "penstock.late"  # set in the scope by the server when the request was not whole at its deadline


class GoneError(Exception):
    """The client went away before its request was whole."""


class LateError(Exception):
    """The request was not whole at its deadline."""


async def next_chunk(scope: Scope, receive: Receive) -> tuple[bytes, bool]:
    """What came of the body, and whether more will."""
    message = await receive()
    if scope.get(LATE):
        raise LateError
    if message["type"] == "http.disconnect":
        raise GoneError
    return message.get("body", b""), message.get("more_body", False)


async def reply(send: Send, answer: Answer) -> None:
    """Send an answer."""
    kind, size = PROBLEM if answer.status >= 400 else JSON, (b"content-length", b"%d" % len(answer.body))
    headers = [kind, size, (b"cache-control", b"no-store"), *answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def header(scope: Scope, wanted: bytes) -> bytes:
    """The first header of that name; empty if there is none."""
    for name, value in scope["headers"]:
        if name == wanted:
            return bytes(value)
    return b""

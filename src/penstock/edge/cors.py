"""What pages of the origins in edge.origins may read of our answers (the CORS protocol of the Fetch standard)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
CorsHeaders = tuple[tuple[bytes, bytes], ...]

ASKED_METHOD, ASKED_HEADERS = b"access-control-request-method", b"access-control-request-headers"
KNOWN_S = 600  # how long a browser may remember what it may ask
_HEADERS = (b"authorization", b"content-type", b"last-event-id", b"penstock-id")
_CLOUD_EVENT = b"ce-"  # its attributes are the sender's to name
_VARY = (b"vary", b"Origin")


def cors_headers(scope: Scope, origins: Collection[bytes]) -> CorsHeaders:
    """What every answer carries: for a page of a named origin that it may read it, for all that answers differ."""
    origin = _header(scope, b"origin")
    if origin.lower() not in origins:
        return (_VARY,)
    exposed = b"Location, Retry-After"
    return (_VARY, (b"access-control-allow-origin", origin), (b"access-control-expose-headers", exposed))


def is_preflight(scope: Scope) -> bool:
    """Whether a browser asks on behalf of a page what that may ask."""
    return scope.get("method") == "OPTIONS" and bool(_header(scope, ASKED_METHOD))


async def answer_preflight(scope: Scope, send: Send, headers: CorsHeaders) -> None:
    """204 with the methods there are, and those of the asked headers that mean something to us."""
    asked = [name.strip().lower() for name in _header(scope, ASKED_HEADERS).split(b",")]
    allowed = b", ".join([name for name in asked if name in _HEADERS or name.startswith(_CLOUD_EVENT)])
    told = [
        (b"access-control-allow-methods", b"GET, POST"),
        (b"access-control-allow-headers", allowed or b", ".join(_HEADERS)),
        (b"access-control-max-age", b"%d" % KNOWN_S),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": [*headers, *told]})
    await send({"type": "http.response.body", "body": b""})


def _header(scope: Scope, wanted: bytes) -> bytes:
    return next((value for name, value in scope["headers"] if name == wanted), b"")

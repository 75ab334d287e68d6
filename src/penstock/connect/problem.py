"""The body of an HTTP error: application/problem+json (RFC 9457). All errors of the edge are encoded here. Pure."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec

PROBLEM = (b"content-type", b"application/problem+json")
_TITLES = {413: "Content Too Large"}  # of RFC 9110; Python 3.11 has the phrase of RFC 2616


def title(status: int) -> str:
    """The reason phrase of an HTTP status."""
    return _TITLES.get(status) or HTTPStatus(status).phrase


def problem(status: int, error: str, **members: Any) -> bytes:
    """An error as JSON. `error` repeats `detail`: clients written before RFC 9457 read it."""
    head = {"type": "about:blank", "title": title(status), "status": status, "detail": error, "error": error}
    return msgspec.json.encode(head | members)

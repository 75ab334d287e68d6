"""Errors of the edge that no route answers itself: an unknown path, a wrong method, a failure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ExceptionHandler

from penstock.connect.problem import PROBLEM, problem

_FAILED = "the edge failed at this request: its log says why"


async def refuse_request(request: Request, refused: Exception) -> Response:
    """The answer to a request that Starlette refuses."""
    if not isinstance(refused, HTTPException):
        return await fail_request()
    headers, error = dict(refused.headers or {}), str(refused.detail)
    if refused.status_code == 404:
        error = f"there is no {request.url.path[:100]}"
    elif refused.status_code == 405 and "Allow" in headers:
        error = f"{headers['Allow']} only, not {request.method[:20]}"
    return _response(refused.status_code, error, headers)


async def fail_request(*_: object) -> Response:
    """The answer to a request that failed; the server logs the exception."""
    return _response(500, _FAILED, {"Connection": "close"})


HANDLERS: Mapping[Any, ExceptionHandler] = {HTTPException: refuse_request, Exception: fail_request}


def _response(status: int, error: str, headers: dict[str, str]) -> Response:
    return Response(problem(status, error), status, headers, PROBLEM[1].decode())

"""GET /metrics, /health and /ready of the edge."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from penstock.errors import PenstockError

READY_WITHIN_S = 2.0
READY_KNOWN_S = 1.0
Missing = Callable[[float], Awaitable[list[str]]]
Lines = Callable[[], Iterable[str]]


def operator_routes(missing: Missing, metrics: Iterable[Lines]) -> list[BaseRoute]:
    """Routes for whoever runs the edge; `missing` asks the queue, `metrics` give the Prometheus text."""
    readiness = _Readiness(missing)

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def show_metrics(_: Request) -> Response:
        text = "\n".join(line for lines in metrics for line in lines()) + "\n"
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    return [
        Route("/health", health, methods=["GET"]),
        Route("/ready", readiness.answer, methods=["GET"]),
        Route("/metrics", show_metrics, methods=["GET"]),
    ]


class _Readiness:
    """Whether the queue answers and has our topics; asked at most once a second, whoever asks us."""

    def __init__(self, missing: Missing) -> None:
        self._missing = missing
        self._known_until = 0.0
        self._said: tuple[int, dict[str, object]] = (503, {"status": "starting"})

    async def answer(self, _: Request) -> Response:
        now = time.monotonic()
        if now > self._known_until:
            self._known_until = now + READY_WITHIN_S + READY_KNOWN_S
            self._said = await self._ask()
            self._known_until = time.monotonic() + READY_KNOWN_S
        status, body = self._said
        return JSONResponse(body, status)

    async def _ask(self) -> tuple[int, dict[str, object]]:
        try:
            missing = await self._missing(READY_WITHIN_S)
        except PenstockError as error:
            return 503, {"status": str(error)}
        if missing:
            return 503, {"status": "topics are missing", "missing": missing}
        return 200, {"status": "ok"}

"""GET /metrics, /health and /ready of the edge."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from penstock.metrics import family

READY_WITHIN_S = 2.0
READY_KNOWN_S = 1.0
Reasons = Callable[[float], Awaitable[list[str]]]
Lines = Callable[[], Iterable[str]]
Refresh = Callable[[], Awaitable[object]]


def operator_routes(reasons: Reasons, metrics: Iterable[Lines], refresh: Sequence[Refresh] = ()) -> list[BaseRoute]:
    """Routes for operators: `reasons` says why the edge is not ready, `metrics` give the Prometheus text.

    Each of `refresh` is awaited before the metrics are read.
    """
    readiness = Readiness(reasons)

    async def health(_: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(_: Request) -> Response:
        found = await readiness.reasons()
        return JSONResponse({"status": status_of(found), "reasons": found}, 503 if found else 200)

    async def show_metrics(_: Request) -> Response:
        await readiness.reasons()
        for each in refresh:
            await each()
        sources = [readiness.metric_lines, *metrics]
        text = "\n".join(line for lines in sources for line in lines()) + "\n"
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")

    return [
        Route("/health", health, methods=["GET"]),
        Route("/ready", ready, methods=["GET"]),
        Route("/metrics", show_metrics, methods=["GET"]),
    ]


def status_of(reasons: Sequence[str]) -> str:
    """All reasons in one sentence, for clients that read no list."""
    if len(reasons) <= 1:
        return reasons[0] if reasons else "ok"
    return f"{len(reasons)} reasons, the first: {reasons[0]}"


class Readiness:
    """Why the edge is not ready; looked for at most once a second, however many ask."""

    def __init__(self, reasons: Reasons) -> None:
        self._ask = reasons
        self._known_until = 0.0
        self._found = ["the edge has just started: ask again"]

    async def reasons(self) -> list[str]:
        """All of them; none: it is ready."""
        now = time.monotonic()
        if now > self._known_until:
            self._known_until = now + READY_WITHIN_S + READY_KNOWN_S
            self._found = await self._ask(READY_WITHIN_S)
            self._known_until = time.monotonic() + READY_KNOWN_S
        return self._found

    def metric_lines(self) -> Iterator[str]:
        """The same as a number."""
        yield from family(
            "penstock_edge_ready", "gauge", "1 if /ready is 200, 0 if it is 503.", [({}, int(not self._found))]
        )

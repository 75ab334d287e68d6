"""Serves the page and its files."""

from __future__ import annotations

from pathlib import Path

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from penstock.edge.dashboard.app_facts import page_facts
from penstock.edge.query_states import QueryStates
from penstock.plan.plan import Plan

STATIC = Path(__file__).with_name("static")
_KINDS = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
_HEADERS = {"Cache-Control": "no-cache"}  # what keeps a browser safe is the edge's guard's to add


def page_routes(plan: Plan, states: QueryStates) -> list[BaseRoute]:
    """/, /app.json, /queries.json and /static/NAME."""
    facts = msgspec.json.encode(page_facts(plan))
    files = {path.name: path.read_bytes() for path in sorted(STATIC.iterdir()) if path.suffix in _KINDS}

    async def page(_: Request) -> Response:
        return _file("page.html", files["page.html"])

    async def app(_: Request) -> Response:
        return Response(facts, media_type="application/json", headers=_HEADERS)

    async def queries(_: Request) -> Response:
        return Response(msgspec.json.encode(states.table()), media_type="application/json", headers=_HEADERS)

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            raise HTTPException(404)
        return _file(name, files[name])

    return [
        Route("/", page),
        Route("/app.json", app),
        Route("/queries.json", queries),
        Route("/static/{name}", static),
    ]


def _file(name: str, content: bytes) -> Response:
    return Response(content, media_type=_KINDS[Path(name).suffix], headers=_HEADERS)

"""A Starlette handler that does nothing, served exactly as the edge is: PORT. Prints `ready`."""

from __future__ import annotations

import asyncio
import sys

import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from penstock.config.edge import EdgeConfig
from penstock.edge.server import edge_server, listening_socket


async def nothing(_: Request) -> Response:
    """Accepted, and forgotten."""
    return Response(status_code=202)


async def serve(port: int) -> None:
    """Until killed."""
    app = Starlette(routes=[Route("/ingest/{path}", nothing, methods=["POST"])])
    sock = listening_socket("127.0.0.1", port)
    server = edge_server(app, EdgeConfig())
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    while not server.started:
        await asyncio.sleep(0.001)
    print("ready", flush=True)
    await serving


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))

"""The process `edge`: the doors in and out on one port. Started by the supervisor with the path of a run's spec."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import uvloop
from starlette.applications import Starlette

from penstock.client.producer import EventProducer
from penstock.client.tail import Tail
from penstock.client.topic_limits import TopicLimits
from penstock.config.addresses import named_address
from penstock.connectors.http.routes import PREFIX, IngestDoors
from penstock.connectors.live.routes import Live
from penstock.edge.dashboard.routes import page_routes
from penstock.edge.disk_metrics import disk_metric_lines
from penstock.edge.group_metrics import GroupMetrics
from penstock.edge.guard import Asgi, Gate, Guard, Scope, Send, refuse_open_edge
from penstock.edge.intake import Intake
from penstock.edge.operator_routes import Lines, operator_routes
from penstock.edge.problems import HANDLERS
from penstock.edge.query_metrics import query_metric_lines
from penstock.edge.query_reasons import query_reasons
from penstock.edge.query_states import QueryStates
from penstock.edge.results.followed_outputs import Results
from penstock.edge.results.routes import result_routes
from penstock.edge.server import EdgeServer, edge_server, listening_socket
from penstock.errors import ConfigError, PenstockError
from penstock.plan.declaration import app_of
from penstock.plan.plan import Plan
from penstock.plan.planner import plan_app
from penstock.plan.run_spec import CHECKED_FIRST, RunSpec
from penstock.process.app_loader import load_app
from penstock.process.file_handles import take_handles
from penstock.process.lifeline import die_with_parent
from penstock.process.log_lines import log_line
from penstock.process.run_spec_file import read_spec
from penstock.process.supervisor_orders import Orders

FAILED, WRONG_CONFIGURATION = 1, 2
GARBAGE_EVERY = 100_000  # events in flight are no garbage: looking for some every 700 objects took 15 % of the time
SPARE_HANDLES = 64  # for the queue's clients and what Python opens in passing
OPENED_LOOK_S = 0.01  # the supervisor's word comes in another thread
BUFFER_FACTOR = 2  # librdkafka counts its copies of what we have counted once


def main() -> int:
    """Serve until SIGTERM."""
    orders = Orders()
    die_with_parent(lambda line: orders.take(line, time.monotonic()))
    gc.set_threshold(GARBAGE_EVERY)
    try:
        spec = read_spec(Path(sys.argv[1]))
        app = app_of(spec.declared) if spec.declared is not None else load_app(spec.app)
        plan = plan_app(app, spec.kind)
        is_checked = (lambda: orders.is_open) if CHECKED_FIRST in sys.argv[2:] else None
        return uvloop.run(serve(spec, plan, is_checked, lambda: orders.topic_errors))
    except ConfigError as wrong:
        for fault in wrong.faults:
            sys.stderr.write(f"penstock: {fault}\n")
        return WRONG_CONFIGURATION


class Ending:
    """Whether the edge must end, and with which status."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.status = 0

    def on_failure(self, what: str, wrong: BaseException | None) -> None:
        """A part has ended that the others need: half an edge would look alive."""
        log_line("error", "edge", detail=f"{what} has ended ({wrong!r}): the edge ends, to be started again")
        self.status = FAILED
        self.asked.set()


async def serve(
    spec: RunSpec,
    plan: Plan,
    is_checked: Callable[[], bool] | None = None,
    topic_errors: Callable[[], Mapping[str, str]] = dict,
) -> int:
    """The life of an edge; its exit status. `is_checked` says whether the queries beside it are known to run.

    `topic_errors` names the topics that are not as the app made them, with the reason.
    """
    ending = Ending()
    host, port = named_address("edge.listen", spec.edge.listen)
    refuse_open_edge(spec.edge, host)
    handles = take_handles(spec.edge.connections_max + SPARE_HANDLES)
    config = replace(spec.edge, connections_max=min(spec.edge.connections_max, handles - SPARE_HANDLES))
    ingested = list(dict.fromkeys(door.topic for door in plan.doors.values()))
    limits = TopicLimits(spec.queue, ingested, partial(ending.on_failure, "the reader of topic limits"))
    await limits.start()
    producer = EventProducer(
        spec.queue,
        plan,
        deadline_ms=config.store_deadline_ms,
        buffer_bytes_max=BUFFER_FACTOR * config.inflight_bytes_max,
        limit=limits.bytes_max,
        note=lambda event, detail: log_line("warning", event, detail=detail),
    )
    limits.on_limit(producer.set_limit)
    collector = Intake(plan, config, producer, limits)
    tail = Tail(spec.queue, on_failure=partial(ending.on_failure, "the reader of topics"))
    results = Results(plan, config, tail, spec.queue)
    live = Live(plan, config, tail, spec.queue)
    states = QueryStates(plan, tail)

    groups = GroupMetrics(spec.queue, list(plan.topics))
    loop = asyncio.get_running_loop()
    data = Path(spec.data)

    async def reasons(timeout_s: float) -> list[str]:
        errors = topic_errors()
        found = list(errors.values())
        if is_checked is not None:
            if not is_checked():
                found.append("ingest accepts no events yet: analyze still checks the queries of the app")
            found += query_reasons(
                plan,
                states.last,
                loop.time(),
                stalled_after_ms=config.stalled_after_ms,
                data=data,
                master=spec.analyze.master,
            )
        try:
            found += await producer.topic_faults([name for name in plan.topics if name not in errors], timeout_s)
        except PenstockError as error:
            found.insert(0, f"{error}: start the queue at {spec.queue}, or look at its log")
        return found

    def query_lines() -> Iterable[str]:
        return query_metric_lines(plan, states.last, loop.time(), config.stalled_after_ms)

    metrics: list[Lines] = [
        lambda: collector.counters.lines(collector.room.taken, results.waits.count),
        live.metric_lines,
        query_lines,
        groups.lines,
        partial(disk_metric_lines, data),
    ]
    doors = IngestDoors(collector, results, is_checked, topic_errors)
    routes = [
        *result_routes(plan, results),
        *live.routes,
        *operator_routes(reasons, metrics, [groups.refresh]),
        *page_routes(plan, states),
    ]
    rest = Starlette(routes=routes, exception_handlers=HANDLERS)
    guard = Guard(_front(doors, rest), Gate(config, host))
    metrics.append(guard.metric_lines)
    try:
        sock = listening_socket(host, port)
    except OSError as error:
        raise ConfigError(f"cannot listen on {spec.edge.listen} ({error.strerror}): choose another --port") from None
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ending.asked.set)
    await _run_server(edge_server(guard, config), sock, doors, live, ending, is_checked)
    await results.close()
    await states.close()
    await groups.close()
    await tail.close()
    await limits.close()
    await producer.close()
    return ending.status


async def _run_server(
    server: EdgeServer,
    sock: socket.socket,
    doors: IngestDoors,
    live: Live,
    ending: Ending,
    is_checked: Callable[[], bool] | None,
) -> None:
    serving = asyncio.create_task(server.serve(sockets=[sock]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.001)
    announcing = asyncio.create_task(_announce(sock, is_checked)) if server.started else None
    stop = asyncio.create_task(ending.asked.wait())
    await asyncio.wait([stop, serving], return_when=asyncio.FIRST_COMPLETED)
    stop.cancel()
    if announcing is not None:
        announcing.cancel()
    if serving.done():
        ending.on_failure("the server", serving.exception())
    # Who waits and who listens hears goodbye first: the server would wait for them to leave.
    doors.stop()
    await live.close()
    server.should_exit = True
    await asyncio.wait([serving])


async def _announce(sock: socket.socket, is_checked: Callable[[], bool] | None) -> None:
    """Print `ready` once ingest accepts events: programs that wait for that line send their first event then."""
    host, port = sock.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    if is_checked is not None and not is_checked():
        _say(f"listening {address}: ingest accepts events once the queries are checked")
        while not is_checked():
            await asyncio.sleep(OPENED_LOOK_S)
    _say(f"ready {address}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _front(doors: Asgi, rest: Asgi) -> Asgi:
    """Events go straight to the doors: Starlette's way to a handler costs as much as storing one."""

    async def pass_on(scope: Scope, receive: Any, send: Send) -> None:
        app = doors if scope["type"] == "http" and scope["path"].startswith(PREFIX) else rest
        await app(scope, receive, send)

    return pass_on


if __name__ == "__main__":
    sys.exit(main())

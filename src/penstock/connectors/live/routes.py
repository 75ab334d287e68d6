"""GET /live/NAME or a pattern of names, by server-sent events or WebSocket."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl

from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Receive, Scope, Send

from penstock.app import Delivery
from penstock.client.tail import Tail
from penstock.config.edge import EdgeConfig
from penstock.config.setting import hint, parameter_fault
from penstock.connectors.live.backlog import shared_policy
from penstock.connectors.live.hub import Hub, RefusedError
from penstock.connectors.live.session import Ask, Session, Wire
from penstock.connectors.live.sse import SseWire
from penstock.connectors.live.start_position import parse_start, parse_until
from penstock.connectors.live.websocket import WebSocketWire
from penstock.kafka.target import KafkaTarget
from penstock.metrics import single
from penstock.plan.plan import Plan

_PREFIX = "/live/"
_PARAMETERS = ("from", "after", "until", "key")
_HELP = {
    "live_clients": "Live clients now.",
    "live_catch_ups": "Live clients that read history now.",
    "live_accepted": "Live clients admitted.",
    "live_refused": "Live clients refused.",
    "live_sent": "Messages written to live clients.",
    "live_dropped": "Messages dropped because their client was slow.",
    "live_conflated": "Messages replaced by a later one of their key because their client was slow.",
    "live_gaps": "Gaps told to live clients: what they asked for is no longer kept.",
    "live_disconnected_slow": "Live clients ended because they were slow.",
}


class Live:
    """The deliveries of an app; make it where a loop runs."""

    def __init__(self, plan: Plan, config: EdgeConfig, tail: Tail, queue: KafkaTarget) -> None:
        self._deliveries = {at.removeprefix(_PREFIX): delivery for at, delivery in plan.deliveries.items()}
        delivered = dict.fromkeys(delivery.topic for delivery in self._deliveries.values())
        self._resumes = {topic: plan.topics[topic].policy.deliver.resume.value for topic in delivered}
        self._hub = Hub(self._resumes, config, tail, queue)

    @property
    def routes(self) -> list[BaseRoute]:
        """For a Starlette application."""
        return [
            Route("/live/{name}", _Door(self, SseWire)),
            WebSocketRoute("/live/{name}", _Door(self, WebSocketWire)),
        ]

    def metrics(self) -> dict[str, float]:
        """Numbers since the start, but for `live_clients` and `live_catch_ups`, which are now."""
        return {f"live_{name}": float(value) for name, value in self._hub.count().items()}

    def metric_lines(self) -> Iterator[str]:
        """The same as Prometheus text, a line each."""
        for name, value in self.metrics().items():
            is_now = name in ("live_clients", "live_catch_ups")
            full = f"penstock_edge_{name}" + ("" if is_now else "_total")
            yield from single(full, "gauge" if is_now else "counter", _HELP[name], int(value))

    async def close(self) -> None:
        """Tell all clients goodbye; call it before the web server waits for its connections to end."""
        await self._hub.close()

    async def serve(self, scope: Scope, wire: Wire) -> None:
        try:
            ask = self._ask(scope)
        except RefusedError as refused:
            self._hub.counts.refused += 1
            await wire.refuse(refused)
        else:
            await Session(self._hub, ask, wire).run()

    def _ask(self, scope: Scope) -> Ask:
        if scope.get("method", "GET") != "GET":
            raise RefusedError(405, "a stream can only be read: use GET")
        deliveries = self._matching(scope["path_params"]["name"])
        topics = tuple(dict.fromkeys(delivery.topic for delivery in deliveries))
        query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
        if fault := parameter_fault(query, _PARAMETERS):
            raise RefusedError(400, fault)
        last_id = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"last-event-id"), None)
        policy, backlog_max = shared_policy([(each.slow_client, each.backlog_max) for each in deliveries])
        try:
            start = parse_start(query, last_id, topics, [topic for topic in topics if self._resumes[topic]])
            until = parse_until(query, topics)
        except ValueError as wrong:
            raise RefusedError(400, str(wrong)) from None
        return Ask(topics, policy, backlog_max, start, until, query["key"].encode() if "key" in query else None)

    def _matching(self, pattern: str) -> list[Delivery]:
        wanted = re.compile(".*".join(map(re.escape, pattern.split("*"))))
        found = [delivery for name, delivery in self._deliveries.items() if wanted.fullmatch(name)]
        if not found:
            near = hint(pattern, self._deliveries)
            raise RefusedError(404, f"nothing is delivered at {_PREFIX}{pattern[:100]}{near}")
        return found


class _Door:
    """An ASGI application of its own: a response object for each message would cost too much."""

    def __init__(self, live: Live, wire: type[SseWire] | type[WebSocketWire]) -> None:
        self._live = live
        self._wire = wire

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._live.serve(scope, self._wire(scope, receive, send))

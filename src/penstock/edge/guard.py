"""Who may talk to the edge: Host, Origin and token of every request, before anything else looks at it."""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from penstock.config.addresses import refuse_exposure
from penstock.config.edge import EdgeConfig
from penstock.connect.problem import PROBLEM, problem
from penstock.edge.cors import CorsHeaders, answer_preflight, cors_headers, is_preflight
from penstock.edge.problems import fail_request
from penstock.errors import ConfigError
from penstock.metrics import family

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Any, Send], Awaitable[None]]

OPEN_PATHS = ("/health", "/ready")  # an orchestrator asks without a token; they tell nothing of the data
OPEN_PREFIX = "/static/"  # a browser sends no token with the files of a page; they are the same for everybody
FAILURE_DELAY_S = 0.5
DELAYED_MAX = 100  # then a wrong token is refused at once: nobody's memory is held
POLICY_CLOSE = 1008

_SAFE = ((b"x-content-type-options", b"nosniff"),)  # on everything; what only pages need costs the doors time
_PAGE_SAFE = (
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_PAGE_POLICY = (
    b"content-security-policy",
    b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
)


class Refusal(NamedTuple):
    """Why a request goes no further."""

    status: int
    reason: str
    error: str


def refuse_open_edge(config: EdgeConfig, host: str) -> None:
    """ConfigError if others than this machine could reach an edge that asks for no token."""
    if config.token:
        return
    try:
        refuse_exposure("edge.listen", host, config.insecure)
    except ConfigError:
        raise ConfigError(
            f"edge.listen {host} can be reached from other machines: give a token with PENSTOCK_EDGE_TOKEN, listen on "
            "127.0.0.1, or give --insecure if the network is trusted"
        ) from None


class Gate:
    """The decision. Pure."""

    def __init__(self, config: EdgeConfig, listen_host: str) -> None:
        self._token = config.token.encode()
        own = {"localhost", "127.0.0.1", "[::1]", f"[{listen_host}]" if ":" in listen_host else listen_host.lower()}
        self._hosts = {host.encode() for host in own | set(_parts(config.hosts))}
        self.origins = {origin.encode() for origin in _parts(config.origins)}

    def refusal(self, scope: Scope) -> Refusal | None:
        """Why this request must not go on; None if it may."""
        host = origin = authorization = b""
        hosts = 0
        for name, value in scope["headers"]:
            if name == b"host":
                host = value.lower()
                hosts += 1
            elif name == b"origin":
                origin = value.lower()
            elif name == b"authorization":
                authorization = value
        if hosts != 1 or _without_port(host) not in self._hosts:
            return Refusal(421, "host", "this Host is not served here: name it in edge.hosts")
        if origin and origin not in self.origins and not _is_own(origin, host):
            return Refusal(403, "origin", "pages of this origin may not talk to us: name it in edge.origins")
        if origin in self.origins and is_preflight(scope):
            return None  # a browser asks it without a token, and is told nothing but what it may ask
        is_open = not self._token or scope["path"] in OPEN_PATHS or scope["path"].startswith(OPEN_PREFIX)
        if not is_open and not self._knows(scope, authorization):
            return Refusal(401, "token", "a token is needed: send it as Authorization: Bearer, or as ?token=")
        return None

    def _knows(self, scope: Scope, authorization: bytes) -> bool:
        kind, _, given = authorization.partition(b" ")
        if kind.lower() != b"bearer":
            found = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])
            given = found[0].encode()
        return hmac.compare_digest(given.strip(), self._token)


class Guard:
    """An ASGI application around another: refuses, delays, and puts safe headers on what is answered."""

    def __init__(self, app: Asgi, gate: Gate) -> None:
        self._app = app
        self._gate = gate
        self._delayed = 0
        self.refused: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        refusal = self._gate.refusal(scope)
        shared = cors_headers(scope, self._gate.origins) if self._gate.origins else ()
        if refusal is not None:
            return await self._refuse(scope, refusal, send, shared)
        if scope["type"] == "websocket":
            return await self._app(scope, receive, send)
        if len(shared) > 1 and is_preflight(scope):
            return await answer_preflight(scope, send, (*_SAFE, *shared))

        is_started = False

        async def send_safely(message: MutableMapping[str, Any]) -> None:
            nonlocal is_started
            if message["type"] == "http.response.start":
                is_started = True
                headers = message["headers"] = [*message.get("headers", ()), *_SAFE, *shared]
                names = dict(headers)
                if names.get(b"content-type", b"").startswith(b"text/html"):
                    headers += _PAGE_SAFE if _PAGE_POLICY[0] in names else (*_PAGE_SAFE, _PAGE_POLICY)
            await send(message)

        try:
            await self._app(scope, receive, send_safely)
        except Exception:
            if not is_started:
                await (await fail_request())(scope, receive, send_safely)
            raise  # the server logs it

    def metric_lines(self) -> Iterator[str]:
        """What was refused, as Prometheus text."""
        samples = [({"reason": reason}, count) for reason, count in sorted(self.refused.items())]
        help = "Requests refused before anything looked at them, by reason."
        yield from family("penstock_edge_guard_refused_total", "counter", help, samples)

    async def _refuse(self, scope: Scope, refusal: Refusal, send: Send, shared: CorsHeaders) -> None:
        self.refused[refusal.reason] += 1
        if refusal.reason == "token" and self._delayed < DELAYED_MAX:
            self._delayed += 1
            try:
                await asyncio.sleep(FAILURE_DELAY_S)
            finally:
                self._delayed -= 1
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": POLICY_CLOSE, "reason": refusal.error})
            return
        body = problem(refusal.status, refusal.error)
        headers = [PROBLEM, (b"content-length", b"%d" % len(body)), *_SAFE, *shared]
        if refusal.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _without_port(host: bytes) -> bytes:
    if host.startswith(b"["):
        return host[: host.find(b"]") + 1]
    return host.partition(b":")[0]


def _is_own(origin: bytes, host: bytes) -> bool:
    return origin in (b"http://" + host, b"https://" + host)


def _parts(text: str) -> Iterable[str]:
    return (part.strip().rstrip("/").lower() for part in text.split(",") if part.strip())

"""The same messages as the text of a WebSocket."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from penstock.connectors.live.envelope import Message
from penstock.connectors.live.hub import RefusedError
from penstock.connectors.live.sse import abort, refuse, transport_of, write_now

SLOW_CODE, STOPPING_CODE = 4008, 1001
_CODES = {"slow": SLOW_CODE, "stopping": STOPPING_CODE}
_REASON_BYTES_MAX = 123  # RFC 6455, section 5.5


class WebSocketWire:
    """One connection; what the client says is read and ignored."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._raw = send
        self._token = ""
        self._transport = transport_of(scope)

    async def refuse(self, refused: RefusedError) -> None:
        if "websocket.http.response" in self._scope.get("extensions", {}):
            await refuse(self._raw, refused, "websocket.http.response")
        else:
            await self._raw({"type": "websocket.close", "code": 1013, "reason": refused.reason[:100]})

    async def open(self) -> None:
        await self._receive()  # websocket.connect
        await self._raw({"type": "websocket.accept"})

    async def send(self, messages: list[Message]) -> None:
        for message in messages:
            await self._raw({"type": "websocket.send", "text": message.text})
            self._token = message.token or self._token

    async def beat(self, token: str) -> None:
        """The server's own pings keep the connection alive."""

    async def finish(self, reason: str) -> None:
        text = f"{reason}; after={self._token}"
        if len(text.encode()) > _REASON_BYTES_MAX:
            text = reason
        await self._raw({"type": "websocket.close", "code": _CODES.get(reason, 1000), "reason": text})

    async def watch(self) -> None:
        while (await self._receive())["type"] != "websocket.disconnect":
            pass

    def write_now(self, message: Message) -> bool:
        if not write_now(self._transport, message.frame):
            return False
        self._token = message.token or self._token
        return True

    def abort(self) -> None:
        abort(self._transport)

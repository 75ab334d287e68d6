"""One plain connection that speaks Kafka's protocol: for set-up and for the first acknowledgement."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self, TypeVar

from penstock.errors import PeerError
from penstock.kafka.wire.apis import APIS, ApiKey
from penstock.kafka.wire.header import decode_response_header, encode_request_header
from penstock.kafka.wire.message import Message, decode, encode

M = TypeVar("M", bound=Message)

_TIMEOUT_S = 120.0


def connect(address: str) -> socket.socket:
    """A blocking connection to HOST:PORT without Nagle's delay."""
    host, port = address.rsplit(":", 1)
    connection = socket.create_connection((host, int(port)), timeout=_TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def frame(key: ApiKey, version: int, body: bytes) -> bytes:
    """A whole request with its length; every request has the same correlation id."""
    request = encode_request_header(key, version, 1, "bench") + body
    return len(request).to_bytes(4, "big") + request


class WireClient:
    """Asks and waits for the answer."""

    def __init__(self, address: str) -> None:
        self._socket = connect(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def ask(self, key: ApiKey, version: int, request: Message, answer: type[M]) -> M:
        """The response to one request; PeerError if the broker hangs up."""
        if not isinstance(request, APIS[key].request):
            raise TypeError(f"{type(request).__name__} is not a request of {key.name}")
        self._socket.sendall(frame(key, version, encode(request, version)))
        size = int.from_bytes(self._exactly(4), "big")
        data = self._exactly(size)
        _, at = decode_response_header(data, key, version)
        return decode(answer, data, version, at)

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        got = 0
        while got < size:
            more = self._socket.recv_into(view[got:], 0, socket.MSG_WAITALL)
            if not more:
                raise PeerError("the broker hung up")
            got += more
        return data

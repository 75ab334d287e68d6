"""A bare connection that says just what a drill wants said, byte by byte if need be."""

from __future__ import annotations

import socket
import struct
from types import TracebackType
from typing import Self, TypeVar

from penstock.kafka.wire.apis import APIS
from penstock.kafka.wire.header import decode_response_header, encode_request_header
from penstock.kafka.wire.message import Message, decode, encode

DEADLINE_S = 30.0
_API_OF = {api.request: api for api in APIS.values()}

R = TypeVar("R", bound=Message)


class PlainClient:
    """One socket to a broker."""

    def __init__(self, port: int) -> None:
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, request: Message, version: int, answer: type[R]) -> R:
        """Send a request and wait for its answer."""
        self.send(frame_of(request, version))
        frame = self.receive()
        _, at = decode_response_header(frame, _API_OF[type(request)].key, version)
        return decode(answer, frame, version, at)

    def send(self, frame: bytes) -> None:
        self.sock.sendall(struct.pack(">i", len(frame)) + frame)

    def receive(self) -> bytes:
        """One answer without its length; EOFError if the broker closes instead."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def drain(self) -> int:
        """Read until the broker closes; how many bytes came. TimeoutError if it does not."""
        size = 0
        try:
            while piece := self.sock.recv(65536):
                size += len(piece)
        except ConnectionError:
            pass
        return size

    def _exactly(self, size: int) -> bytes:
        got = bytearray()
        while len(got) < size:
            piece = self.sock.recv(size - len(got))
            if not piece:
                raise EOFError
            got += piece
        return bytes(got)

    def close(self) -> None:
        self.sock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def frame_of(request: Message, version: int, correlation_id: int = 1) -> bytes:
    """A request with its header."""
    return encode_request_header(_API_OF[type(request)].key, version, correlation_id, "drill") + encode(
        request, version
    )

"""A connection that says exactly what a test wants said, in our own wire codecs."""

from __future__ import annotations

import dataclasses
import socket
import struct
import time
from types import TracebackType
from typing import Self, TypeVar

from penstock.kafka.wire.apis import APIS
from penstock.kafka.wire.header import decode_response_header, encode_request_header
from penstock.kafka.wire.message import Message, decode, encode
from penstock.kafka.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

DEADLINE_S = 30.0
_NOT_YET = {14, 15, 16}  # COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
_API_OF = {api.request: api for api in APIS.values()}

R = TypeVar("R", bound=Message)


class ClosedByBroker(Exception):
    """The broker ended the connection instead of answering."""


class Connection:
    """One socket to a broker; requests may be pipelined with `send` and `receive`."""

    def __init__(self, address: str) -> None:
        self.address = address
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=DEADLINE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._next_id = 0

    def ask(self, request: Message, version: int, answer: type[R]) -> R:
        """Send a request and wait for its answer."""
        correlation_id = self.send(request, version)
        answered, response = self.receive(type(request), version)
        assert answered == correlation_id
        assert isinstance(response, answer)
        return response

    def send(self, request: Message, version: int) -> int:
        """Send a request; its correlation id."""
        api = _API_OF[type(request)]
        self._next_id += 1
        self.send_frame(encode_request_header(api.key, version, self._next_id, "compat") + encode(request, version))
        return self._next_id

    def receive(self, request: type[Message], version: int) -> tuple[int, Message]:
        """The next answer, read as one to this kind of request, and the correlation id it carries."""
        api = _API_OF[request]
        frame = self.receive_frame()
        correlation_id, at = decode_response_header(frame, api.key, version)
        return correlation_id, decode(api.response, frame, version, at)

    def send_frame(self, frame: bytes) -> None:
        self._socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive_frame(self) -> bytes:
        """The bytes of one answer without their length."""
        (size,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(size)

    def _exactly(self, size: int) -> bytes:
        got = bytearray()
        while len(got) < size:
            try:
                piece = self._socket.recv(size - len(got))
            except ConnectionResetError:
                piece = b""
            if not piece:
                raise ClosedByBroker
            got += piece
        return bytes(got)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()


class Patient:
    """A connection that asks again while the broker's coordinator is not there yet, as clients do."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def ask(self, request: Message, version: int, answer: type[R]) -> R:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            response = self._connection.ask(request, version, answer)
            if time.monotonic() > deadline or not _NOT_YET & _codes(response):
                return response
            # Kafka makes the topic in which it keeps groups when it is first asked who looks after one.
            self._connection.ask(FindCoordinatorRequest("any"), 3, FindCoordinatorResponse)


def _codes(value: object) -> set[object]:
    """Every error code of an answer."""
    if isinstance(value, list):
        return {code for element in value for code in _codes(element)}
    if not dataclasses.is_dataclass(value):
        return set()
    fields = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    return {each for name, each in fields if name == "error_code"}.union(*(_codes(each) for _, each in fields))

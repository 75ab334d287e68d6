"""Bare requests to brokers, for what client libraries do not offer."""

from __future__ import annotations

import struct
from types import TracebackType
from typing import Self, TypeVar

from penstock.client.factory import open_socket
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget
from penstock.kafka.wire.apis import APIS
from penstock.kafka.wire.header import decode_response_header, encode_request_header
from penstock.kafka.wire.message import Message, decode, encode

DEADLINE_S = 15.0
_API_OF = {api.request: api for api in APIS.values()}

R = TypeVar("R", bound=Message)


class BareConnection:
    """One socket to one broker; one request at a time."""

    def __init__(self, broker: KafkaTarget) -> None:
        self._socket = open_socket(broker, DEADLINE_S)
        self._next_id = 0

    def ask(self, request: Message, version: int, answer: type[R]) -> R:
        """Send a request and wait for its answer. PenstockError if the broker does not know it, or is gone."""
        api = _API_OF[type(request)]
        self._next_id += 1
        frame = encode_request_header(api.key, version, self._next_id, "penstock") + encode(request, version)
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
            (size,) = struct.unpack(">i", self._exactly(4))
            body = self._exactly(size)
        except TimeoutError:
            raise PenstockError(f"the broker did not answer within {DEADLINE_S:.0f} s") from None
        except OSError as error:
            raise PenstockError(f"the broker closed the connection at {api.name} version {version} ({error})") from None
        _, at = decode_response_header(body, api.key, version)
        return decode(answer, body, version, at)

    def _exactly(self, size: int) -> bytes:
        got = bytearray()
        while len(got) < size:
            piece = self._socket.recv(size - len(got))
            if not piece:
                raise ConnectionResetError("it does not know this version")
            got += piece
        return bytes(got)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

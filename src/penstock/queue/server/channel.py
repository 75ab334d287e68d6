"""One client: frames in, chunks out, without copying more than needed."""

from __future__ import annotations

import select
from collections import deque
from struct import Struct
from typing import Final

from penstock.config.broker import BrokerConfig
from penstock.errors import PeerError
from penstock.ports import Buffer
from penstock.queue.server.transport import Transport

_unpack_length: Final = Struct(">i").unpack_from
_GROW_FROM: Final = 1024 * 1024
_IOV_MAX: Final = 512
_SMALL: Final = 16 * 1024


class Channel:
    """Cuts what a transport receives into frames, and sends replies as fast as the client takes them."""

    __slots__ = (
        "_filled",
        "_frame",
        "_head",
        "_length",
        "active_ms",
        "began_ms",
        "closing",
        "frame_max",
        "has_asked",
        "is_paused",
        "is_stranger",
        "moved_ms",
        "number",
        "out",
        "owes_drained",
        "peer",
        "transport",
    )

    def __init__(self, number: int, transport: Transport, peer: str, frame_max: int, now_ms: int) -> None:
        self.number = number
        self.transport = transport
        self.peer = peer
        self.frame_max = frame_max
        self.active_ms = now_ms
        self.began_ms = 0  # when the frame being received began; 0: none is
        self.moved_ms = now_ms  # when the client last took something of what waits in `out`
        self.closing: str | None = None
        self.is_paused = False
        self.has_asked = False  # whether a whole request has come
        self.is_stranger = True  # until one of its requests has made sense
        self.owes_drained = False
        self.out: deque[Buffer] = deque()
        self._head = b""
        self._frame: bytearray | None = None
        self._length = 0
        self._filled = 0

    @property
    def wanted(self) -> int:
        """What a poller has to watch for."""
        own = 0 if self.is_paused or self.closing is not None else select.POLLIN
        return own | (select.POLLOUT if self.out else 0) | self.transport.wants()

    @property
    def is_sending(self) -> bool:
        """Whether bytes wait here, or in the transport, until the socket takes them."""
        return bool(self.out) or self.transport.wants() != 0

    def receive(self, scratch: memoryview, now_ms: int) -> tuple[list[memoryview], int]:
        """Whole frames that have arrived, and how much of `scratch` they use; EOFError at the end of the stream."""
        if self._frame is not None:
            return self._receive_long(now_ms), 0
        size = self.transport.receive_into(scratch)
        if size == 0:
            raise EOFError
        self.active_ms = now_ms
        if not self._head and size > 4:
            length: int = _unpack_length(scratch)[0]
            if length == size - 4 <= self.frame_max:  # one frame, and whole: so most of them come
                return [scratch[4:size]], size
        if self._head:
            # A length was cut in two: glue it, at the cost of one copy.
            data = memoryview(bytearray(self._head + scratch[:size].tobytes()))
            self._head = b""
            return self._split(data, now_ms), 0
        return self._split(scratch[:size], now_ms), size

    def why_late(self, limits: BrokerConfig, now_ms: int) -> str | None:
        """Why it is to be closed: it takes too long over a request or a reply, or says nothing for too long."""
        if self.is_sending and now_ms - self.moved_ms > limits.reply_deadline_ms:
            return "took nothing of its replies for too long (reply_deadline_ms)"
        if self.is_paused:
            return None
        if self.began_ms and now_ms - self.began_ms > limits.request_deadline_ms:
            return "a request was not whole in time (request_deadline_ms)"
        if now_ms - self.active_ms > limits.idle_ms_max:
            return "silent for too long (idle_ms_max)"
        return None

    def _split(self, data: memoryview, now_ms: int) -> list[memoryview]:
        frames: list[memoryview] = []
        at, end = 0, len(data)
        while end - at >= 4:
            length: int = _unpack_length(data, at)[0]
            if not 0 < length <= self.frame_max:
                self._refuse(length)
            following = at + 4 + length
            if following > end:
                self._begin_long(data[at + 4 : end], length, now_ms)
                return frames
            frames.append(data[at + 4 : following])
            at = following
            self.began_ms = 0
        if at < end:
            self._head = data[at:end].tobytes()
            self.began_ms = self.began_ms or now_ms
        return frames

    def _refuse(self, length: int) -> None:
        if length <= 0:
            raise PeerError(f"a frame of {length} bytes")
        if length >> 16 == 0x1603:
            raise PeerError("a TLS greeting; this port speaks plain Kafka")
        raise PeerError(f"a frame of {length} bytes, {self.frame_max} are allowed")

    def _begin_long(self, part: memoryview, length: int, now_ms: int) -> None:
        """Collect a frame that is not whole yet; memory grows with what came, not with what was announced."""
        self._frame = bytearray(min(length, max(_GROW_FROM, 2 * len(part))))
        self._frame[: len(part)] = part
        self._filled = len(part)
        self._length = length
        self.began_ms = self.began_ms or now_ms

    def _receive_long(self, now_ms: int) -> list[memoryview]:
        frame = self._frame
        if frame is None:
            return []
        if self._filled == len(frame):
            frame.extend(bytes(min(len(frame), self._length - len(frame))))
        with memoryview(frame) as view:
            size = self.transport.receive_into(view[self._filled :])
        if size == 0:
            raise EOFError
        self.active_ms = now_ms
        self._filled += size
        if self._filled < self._length:
            return []
        self._frame = None
        self.began_ms = 0
        return [memoryview(frame)]

    def send(self, chunks: list[Buffer]) -> bool:
        """Send what the socket takes; True when nothing is left."""
        if self.out:
            self.out.extend(chunks)
            return False
        if len(chunks) == 1 or sum(map(len, chunks)) <= _SMALL:
            data = chunks[0] if len(chunks) == 1 else b"".join(chunks)
            try:
                sent = self.transport.send([data])
            except BlockingIOError:
                sent = 0
            if sent == len(data):
                return not self.transport.wants()
            self.out.append(memoryview(data)[sent:])
            return False
        self.out.extend(chunks)
        return self.send_more()

    def send_more(self) -> bool:
        """Go on sending; True when nothing is left."""
        out = self.out
        if not out and self.transport.wants():
            try:
                self.transport.send([])
            except BlockingIOError:
                return False
        while out:
            group = [out[n] for n in range(min(len(out), _IOV_MAX))]
            try:
                sent = self.transport.send(group)
            except BlockingIOError:
                return False
            wanted = sum(map(len, group))
            if sent == wanted and len(group) == len(out):
                out.clear()
                break
            while sent and sent >= len(out[0]):
                sent -= len(out.popleft())
            if sent:
                out[0] = memoryview(out[0])[sent:]
        return not self.transport.wants()

"""A process that keeps a window of produce requests in flight: ADDRESS TOPIC CONNECTIONS WINDOW WARM_S MEASURE_S."""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from collections.abc import Callable

from bench.topics import produce_frame
from bench.wire_client import connect
from penstock.errors import PeerError

_RECEIVE_BYTES = 64 * 1024


class Lane:
    """One connection with `window` requests in flight. All answers have one size, so bytes tell their number."""

    __slots__ = ("_answer_bytes", "_frame_bytes", "_frames", "_receive", "_rest", "_send", "socket")

    def __init__(self, address: str, frame: bytes, window: int) -> None:
        self.socket = connect(address)
        self._send = self.socket.send
        self._receive = self.socket.recv
        self._frame_bytes = len(frame)
        self._frames = memoryview(frame * window)
        self._rest = 0
        self._answer_bytes = self._first_answer(frame)
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, max(len(self._frames) * 2, 1 << 16))

    def fill(self) -> None:
        """Send a whole window."""
        self._send_exactly(self._frames)

    def turn(self) -> int:
        """Take the answers that are there and send as many requests; how many that were."""
        got = self._rest + len(self._receive(_RECEIVE_BYTES))
        answers, self._rest = divmod(got, self._answer_bytes)
        if answers:
            self._send_exactly(self._frames[: answers * self._frame_bytes])
        elif got == self._rest == 0:
            raise PeerError("the broker hung up")
        return answers

    def drain(self) -> int:
        """The answers still on their way, counted until none is left."""
        self.socket.settimeout(30.0)
        left = len(self._frames) // self._frame_bytes * self._answer_bytes - self._rest
        answers = (left + self._rest) // self._answer_bytes
        while left > 0:
            left -= len(self._receive(min(left, _RECEIVE_BYTES))) or left + 1
        if left < 0:
            raise PeerError("the broker hung up")
        return answers

    def _send_exactly(self, data: memoryview) -> None:
        # The send buffer holds two windows: a part that does not fit means that the broker reads no more.
        if self._send(data) != len(data):
            raise PeerError("the broker takes no more requests")

    def _first_answer(self, frame: bytes) -> int:
        self.socket.sendall(frame)
        size = int.from_bytes(self.socket.recv(4, socket.MSG_WAITALL), "big")
        return 4 + len(self.socket.recv(size, socket.MSG_WAITALL))


def load(address: str, topic: str, connections: int, window: int, warm_s: float, measure_s: float) -> dict[str, float]:
    """`rate` of answers in the measured time; `answers` of the whole run."""
    frame = produce_frame(topic, 0, bytes(100))
    lanes = [Lane(address, frame, window) for _ in range(connections)]
    poller = select.epoll()
    turns = {}
    for lane in lanes:
        poller.register(lane.socket, select.EPOLLIN)
        turns[lane.socket.fileno()] = lane.turn
    for lane in lanes:
        lane.fill()
    warm = _run(poller, turns, warm_s)
    begun = time.perf_counter()
    measured = _run(poller, turns, measure_s)
    rate = measured / (time.perf_counter() - begun)
    drained = sum(lane.drain() for lane in lanes)
    return {"rate": rate, "answers": connections + warm + measured + drained}


def _run(poller: select.epoll, turns: dict[int, Callable[[], int]], seconds: float) -> int:
    poll, clock = poller.poll, time.perf_counter
    end = clock() + seconds
    answers = 0
    while clock() < end:
        for handle, _ in poll(1.0):
            answers += turns[handle]()
    return answers


if __name__ == "__main__":
    address, topic, connections, window, warm_s, measure_s = sys.argv[1:]
    print(json.dumps(load(address, topic, int(connections), int(window), float(warm_s), float(measure_s))))

"""Where strangers wait: listeners, and clients that have not said anything sensible yet, a few of them in each turn."""

from __future__ import annotations

import errno
import select
import socket
from collections.abc import Callable

from penstock.queue.server.channel import Channel

SERVED_AT_ONCE = 2  # clients that are known wait for so many: p99 1.1 to 1.4 ms, with four 1.6 to 1.9
ACCEPTED_AT_ONCE = 2  # as dear as serving as many
RESTS = 3  # times as long as the turn that they pay for
REST_NS_MAX = 50_000_000  # pages for operators wait with them; and a turn may be long because the machine stood still
NS_IN_MS = 1_000_000
PATIENCE_MS = 1000  # every client speaks as soon as it is let in
PEEKED_AT_ONCE = 8  # of those who wait to be heard, before a newcomer is sent away
IN = select.POLLIN


class NewConnections:
    """A poller inside the loop's poller: `fd` is readable there while a stranger wants something, unless all rest."""

    def __init__(self, outer: select.epoll, on_refused: Callable[[], None]) -> None:
        """`on_refused` is told of each caller that was sent away because no file handle is left."""
        self.poller = select.epoll()
        self.fd = self.poller.fileno()
        self._outer = outer
        self._on_refused = on_refused
        self.gone = 0  # how many went or were sent away
        self.is_resting = False
        self._owed_ns = 0
        self._rest_until_ns = 0
        outer.register(self.fd, IN)
        self._listeners: dict[int, tuple[socket.socket, Callable[[socket.socket, str], None]]] = {}
        self._spare: socket.socket | None = socket.socket()
        self._silent: dict[int, tuple[Channel, int]] = {}  # with since when, the first one first

    def take(self, channel: Channel, now_ms: int) -> None:
        """A client was let in: a stranger, until `let_go`."""
        self._silent[channel.number] = channel, now_ms
        self.poller.register(channel.transport.fd, channel.wanted)

    def heard(self, channel: Channel) -> None:
        """It has sent a whole request: it keeps its place."""
        self._silent.pop(channel.number, None)

    def let_go(self, channel: Channel) -> None:
        """It is known now, or goes."""
        self.heard(channel)
        self.poller.unregister(channel.transport.fd)

    def most_silent(self, now_ms: int) -> Channel | None:
        """Who has said nothing for the longest; None if all of them have only just come, or wait to be heard."""
        for _ in range(PEEKED_AT_ONCE):
            channel, since_ms = next(iter(self._silent.values()), (None, now_ms))
            if channel is None or now_ms - since_ms < PATIENCE_MS:
                return None
            if not channel.transport.has_input():
                return channel
            del self._silent[channel.number]
            self._silent[channel.number] = channel, now_ms
        return None

    def listen(self, sock: socket.socket, take: Callable[[socket.socket, str], None]) -> None:
        """Accept from this socket from now on; `take` gets each caller, with its address."""
        sock.setblocking(False)
        self._listeners[sock.fileno()] = sock, take
        self.poller.register(sock.fileno(), IN)

    def rest(self, began_ns: int, ended_ns: int) -> None:
        """Nobody hears them for a while: a turn of theirs, from then until then, was dear to the others.

        The poller waits for whole milliseconds, so short turns are paid for together: who only connects and goes costs
        newcomers little.
        """
        self._owed_ns += RESTS * (ended_ns - began_ns)
        if self._owed_ns < NS_IN_MS:
            return
        self.is_resting = True
        self._rest_until_ns = ended_ns + min(self._owed_ns, REST_NS_MAX)
        self._owed_ns = 0
        self._outer.modify(self.fd, 0)

    def rest_on(self, wait_ms: int, now_ns: int) -> int:
        """How long the loop may wait, at most `wait_ms`: to the end of their rest. If that is over, they are heard."""
        left_ms = -(-(self._rest_until_ns - now_ns) // NS_IN_MS)
        if left_ms > 0:
            return min(wait_ms, left_ms)
        self.end_rest()
        return wait_ms

    def end_rest(self) -> None:
        """They are heard again."""
        self.is_resting = False
        self._outer.modify(self.fd, IN)

    def ready(self) -> list[tuple[int, int]]:
        """A few of those who want something; the others come first next time."""
        return self.poller.poll(0, SERVED_AT_ONCE)

    def accept(self, fd: int) -> None:
        """Let in a few of those who wait at a listener; what is no listener is left alone."""
        if fd not in self._listeners:
            return
        listener, take = self._listeners[fd]
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                sock, address = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE) or not self._refuse_one(listener):
                    return
                continue
            sock.setblocking(False)
            take(sock, f"{address[0]}:{address[1]}")

    def _refuse_one(self, listener: socket.socket) -> bool:
        """No file handle is left: use the spare one to hang up on a client, instead of leaving it waiting."""
        if self._spare is not None:
            self._spare.close()
        try:
            listener.accept()[0].close()
        except OSError:
            return False  # nobody is waiting after all, or even the spare handle was taken by somebody else
        finally:
            try:
                self._spare = socket.socket()
            except OSError:
                self._spare = None
        self._on_refused()
        return True

    def shut(self) -> None:
        """Accept nobody any more."""
        for listener, _ in self._listeners.values():
            self.poller.unregister(listener.fileno())
            listener.close()
        self._listeners.clear()
        if self._spare is not None:
            self._spare.close()
            self._spare = None

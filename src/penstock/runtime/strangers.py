"""Where strangers wait: listeners, and clients that have not said anything sensible yet, a few of them in each turn."""

from __future__ import annotations

import errno
import select
import socket
from collections.abc import Callable

SERVED_AT_ONCE = 4  # about half a millisecond, which is what clients that are known wait for strangers
ACCEPTED_AT_ONCE = 4  # as dear as serving as many
IN = select.POLLIN


class Strangers:
    """A poller inside the loop's poller: `fd` is readable while a stranger wants something."""

    def __init__(self, on_refused: Callable[[], None]) -> None:
        """`on_refused` is told of each caller that was sent away because no file handle is left."""
        self.poller = select.epoll()
        self.fd = self.poller.fileno()
        self._on_refused = on_refused
        self._listeners: dict[int, tuple[socket.socket, Callable[[socket.socket, str], None]]] = {}
        self._spare: socket.socket | None = socket.socket()

    def listen(self, sock: socket.socket, take: Callable[[socket.socket, str], None]) -> None:
        """Accept from this socket from now on; `take` gets each caller, with its address."""
        sock.setblocking(False)
        self._listeners[sock.fileno()] = sock, take
        self.poller.register(sock.fileno(), IN)

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

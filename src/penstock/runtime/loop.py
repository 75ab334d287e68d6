"""The broker's event loop: sockets and syncs become events, effects become sends and syncs."""

from __future__ import annotations

import errno
import os
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from penstock.broker.events import (
    Close,
    Connected,
    Disconnected,
    Drained,
    Effect,
    Event,
    Load,
    Note,
    Pause,
    Received,
    Reply,
    Resume,
    Sync,
)
from penstock.broker.node import Node
from penstock.config import BrokerConfig
from penstock.errors import PeerError
from penstock.runtime.channel import Channel
from penstock.runtime.clock import SteadyClock
from penstock.runtime.http_clients import HttpClients
from penstock.runtime.loading import LoadPool
from penstock.runtime.logs import log_line
from penstock.runtime.syncing import SyncPool

SCRATCH_BYTES = 1024 * 1024
SCRATCH_LEAST = 128 * 1024
SWEEP_MS = 1000
ACCEPTED_AT_ONCE = 64  # a crowd at the door waits its turn like everybody
GATHERED_MAX = 256  # with so many events nobody looks whether there are more before the step
IN, OUT = select.POLLIN, select.POLLOUT


class Loop:
    """Drives one node until `stop` is called."""

    def __init__(self, node: Node, config: BrokerConfig, clock: SteadyClock, pool: SyncPool) -> None:
        self._node = node
        self._config = config
        self._clock = clock
        self._pool = pool
        self._loads = LoadPool(pool.is_syncing)
        self._poller = select.epoll()
        self._channels: dict[int, Channel] = {}
        self._by_number: dict[int, Channel] = {}
        self._https = HttpClients(node, config, clock, self._poller)
        self._listeners: dict[int, Callable[[], None]] = {}
        self._sockets: list[socket.socket] = []
        self._pending: list[Event] = []
        self._syncs: list[Sync] = []
        self._next_number = 0
        self._sweep_at_ms = 0
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._used = 0  # of the scratch, by frames that wait for the step
        self._taken = 0  # bytes of these frames, and of those too long for the scratch
        self._spare: socket.socket | None = socket.socket()
        self._refused_log_ms = 0
        self._signal_fd = -1
        self._is_stopping = False
        self._poller.register(pool.wake_fd, IN)
        self._poller.register(self._loads.wake_fd, IN)
        self._perform: dict[type, Callable[[Any], None]] = {
            Reply: self._reply,
            Sync: self._sync,
            Load: self._loads.submit,
            Close: self._close,
            Pause: self._pause,
            Resume: self._resume,
            Note: self._note,
        }

    def listen(self, sock: socket.socket, *, http: bool = False) -> None:
        sock.setblocking(False)
        self._sockets.append(sock)
        accept = self._https.accept if http else self._accept_client
        self._listeners[sock.fileno()] = lambda: self._accept(sock, accept)
        self._poller.register(sock.fileno(), IN)

    def stop(self) -> None:
        """Ask the loop to end; safe in a signal handler, whose wakeup ends the poll."""
        self._is_stopping = True

    def wake_on(self, fd: int) -> None:
        """End a poll when this descriptor becomes readable (signals)."""
        self._signal_fd = fd
        self._poller.register(fd, IN)

    def run(self) -> None:
        """Serve until stopped, then leave everything durable."""
        while not self._is_stopping:
            now_ms = self._clock.now_ms()
            self._turn(0 if self._pending else max(0, self._next_wake_ms(now_ms) - now_ms))
        self._finish()

    def _next_wake_ms(self, now_ms: int) -> int:
        deadline = self._node.next_deadline_ms
        if self._channels or self._https:
            if self._sweep_at_ms <= now_ms:
                self._sweep(now_ms)
            deadline = min(deadline, self._sweep_at_ms)
        return deadline

    def _turn(self, timeout_ms: int) -> None:
        """One wake-up: all that is ready, and what arrives while it is read, goes into one step."""
        ready = self._poller.poll(timeout_ms / 1000)
        now_ms = self._clock.now_ms()
        events, self._pending = self._pending, []
        self._used = 0
        while ready:
            before = len(events)
            for fd, mask in ready:
                channel = self._channels.get(fd)
                if channel is None:
                    self._on_other(fd, mask, events)
                    continue
                if mask & OUT:
                    self._send_more(channel, events)
                if mask & ~OUT and fd in self._channels:
                    if SCRATCH_BYTES - self._used < SCRATCH_LEAST:
                        # The others are still ready in the next turn; this step may have closed some of them.
                        self._step(events, now_ms)
                        return
                    self._receive(channel, events, now_ms)
            # Whoever was accepted meanwhile is unknown to the node before the next step.
            is_more = before < len(events) <= GATHERED_MAX and not self._pending
            ready = self._poller.poll(0) if is_more else []
        self._step(events, now_ms)

    def _step(self, events: list[Event], now_ms: int) -> None:
        while True:
            self._perform_all(self._node.step(events, now_ms))
            taken, self._taken, self._used = self._taken, 0, 0
            if not self._syncs:
                return
            syncs, self._syncs = self._syncs, []
            events = list(self._pool.run(syncs, taken))
            if not events:
                return

    def _perform_all(self, effects: list[Effect]) -> None:
        perform = self._perform
        for effect in effects:
            perform[type(effect)](effect)

    def _receive(self, channel: Channel, events: list[Event], now_ms: int) -> None:
        if channel.is_paused or channel.closing is not None:
            self._drop(channel, events)  # a client that is not read wakes us only by an error or a hang-up
            return
        try:
            frames, used = channel.receive(self._scratch[self._used :], now_ms)
        except (BlockingIOError, InterruptedError):
            return
        except (EOFError, OSError):
            self._drop(channel, events)
            return
        except PeerError as error:
            log_line("warning", "connection closed", peer=channel.peer, reason=str(error))
            self._node.counters.closed_for("frame")
            self._drop(channel, events)
            return
        self._used += used
        number = channel.number
        for frame in frames:
            events.append(Received(number, frame))
            self._taken += len(frame)
        if frames:
            channel.frame_max = self._config.frame_bytes_max

    def _accept(self, listener: socket.socket, take: Callable[[socket.socket, str], None]) -> None:
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
        self._node.counters.closed_for("no_file_handles")
        now_ms = self._clock.now_ms()
        if now_ms - self._refused_log_ms >= SWEEP_MS:
            self._refused_log_ms = now_ms
            log_line("error", "connections refused", reason="no file handles are left (ulimit -n)")
        return True

    def _accept_client(self, sock: socket.socket, peer: str) -> None:
        if len(self._channels) >= self._config.connections_max:
            sock.close()
            self._node.counters.closed_for("limit")
            log_line("warning", "connection refused", peer=peer, reason="connections_max are open")
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._next_number += 1
        now_ms = self._clock.now_ms()
        channel = Channel(self._next_number, sock, peer, self._config.frame_bytes_max_first, now_ms)
        self._channels[sock.fileno()] = channel
        self._by_number[channel.number] = channel
        self._poller.register(sock.fileno(), IN)
        self._pending.append(Connected(channel.number, peer))

    def _on_other(self, fd: int, mask: int, events: list[Event]) -> None:
        if fd == self._pool.wake_fd:
            events.extend(self._pool.collect())
        elif fd == self._loads.wake_fd:
            events.extend(self._loads.collect())
        elif fd in self._listeners:
            self._listeners[fd]()
        elif fd in self._https:
            self._https.serve(fd)
        elif fd == self._signal_fd:
            with suppress(BlockingIOError):
                os.read(fd, 64)

    def _reply(self, effect: Reply) -> None:
        number, chunks, is_large = effect
        channel = self._by_number.get(number)
        if channel is None:
            return
        if is_large:
            channel.owes_drained = True
        had_output = bool(channel.out)
        try:
            is_done = channel.send(chunks)
        except OSError:
            self._drop(channel, self._pending)
            return
        if not is_done:
            if not had_output:
                channel.moved_ms = self._clock.now_ms()
                self._watch(channel)
        elif channel.owes_drained:
            channel.owes_drained = False
            self._pending.append(Drained(number))

    def _send_more(self, channel: Channel, events: list[Event]) -> None:
        channel.moved_ms = self._clock.now_ms()
        try:
            if not channel.send_more():
                return
        except OSError:
            self._drop(channel, events)
            return
        if channel.owes_drained:
            channel.owes_drained = False
            events.append(Drained(channel.number))
        if channel.closing is not None:
            self._drop(channel, events)
        else:
            self._watch(channel)

    def _watch(self, channel: Channel) -> None:
        wanted = 0 if channel.is_paused or channel.closing is not None else IN
        self._poller.modify(channel.sock.fileno(), wanted | (OUT if channel.out else 0))

    def _sync(self, effect: Sync) -> None:
        self._syncs.append(effect)

    def _close(self, effect: Close) -> None:
        number, reason = effect
        channel = self._by_number.get(number)
        if channel is None:
            return
        log_line("warning", "connection closed", peer=channel.peer, reason=reason)
        channel.closing = reason
        if channel.out:
            self._watch(channel)
        else:
            self._drop(channel, self._pending)

    def _pause(self, effect: Pause) -> None:
        self._set_paused(effect.connection, True)

    def _resume(self, effect: Resume) -> None:
        if not self._is_stopping:
            self._set_paused(effect.connection, False)

    def _set_paused(self, number: int, is_paused: bool) -> None:
        channel = self._by_number.get(number)
        if channel is not None:
            channel.is_paused = is_paused
            self._watch(channel)

    def _note(self, effect: Note) -> None:
        log_line(effect.level, effect.event, **effect.details)

    def _drop(self, channel: Channel, events: list[Event]) -> None:
        if self._by_number.pop(channel.number, None) is None:
            return
        fd = channel.sock.fileno()
        del self._channels[fd]
        self._poller.unregister(fd)
        channel.sock.close()
        events.append(Disconnected(channel.number))

    def _sweep(self, now_ms: int) -> None:
        """Close who takes too long over one request, or says nothing for too long."""
        self._sweep_at_ms = now_ms + SWEEP_MS
        limits = self._config
        for channel in list(self._channels.values()):
            if channel.out and now_ms - channel.moved_ms > limits.reply_deadline_ms:
                self._expire(channel, "took nothing of its replies for too long (reply_deadline_ms)")
            elif channel.is_paused:
                continue
            elif channel.began_ms and now_ms - channel.began_ms > limits.request_deadline_ms:
                self._expire(channel, "a request was not whole in time (request_deadline_ms)")
            elif now_ms - channel.active_ms > limits.idle_ms_max:
                self._expire(channel, "silent for too long (idle_ms_max)")
        self._https.sweep(now_ms)

    def _expire(self, channel: Channel, reason: str) -> None:
        log_line("info", "connection closed", peer=channel.peer, reason=reason)
        self._node.counters.closed_for("deadline")
        self._drop(channel, self._pending)

    def _finish(self) -> None:
        """Accept nothing more, make everything durable, answer who waits for that, and close."""
        for sock in self._sockets:
            self._poller.unregister(sock.fileno())
            sock.close()
        self._listeners.clear()
        for channel in self._channels.values():
            channel.is_paused = True
            self._watch(channel)
        self._perform_all(self._node.sync_all())
        self._step([], self._clock.now_ms())
        deadline_ms = self._clock.now_ms() + self._config.stop_deadline_ms
        while (self._node.is_syncing or self._is_sending) and (left_ms := deadline_ms - self._clock.now_ms()) > 0:
            self._turn(min(left_ms, SWEEP_MS))
        if self._node.is_syncing:
            log_line("error", "stopped before every sync had ended (stop_deadline_ms); the next start recovers")
            return
        for channel in list(self._channels.values()):
            channel.sock.close()
        if self._spare is not None:
            self._spare.close()
        self._pool.stop()
        self._perform_all(self._node.shut_down())

    @property
    def _is_sending(self) -> bool:
        return any(channel.out for channel in self._channels.values())

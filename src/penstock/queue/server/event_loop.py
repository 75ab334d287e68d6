"""The broker's event loop: sockets and syncs become events, effects become sends and syncs."""

from __future__ import annotations

import os
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final

from penstock.config.broker import BrokerConfig
from penstock.errors import PeerError
from penstock.process.log_lines import log_line
from penstock.queue.core.events import (
    Close,
    Connected,
    Disconnected,
    Drained,
    Effect,
    Event,
    Load,
    Note,
    Open,
    Pause,
    Received,
    Reply,
    Resume,
    Sync,
)
from penstock.queue.node import Node
from penstock.queue.server.channel import Channel
from penstock.queue.server.clock import SteadyClock
from penstock.queue.server.close_log import CloseLog
from penstock.queue.server.http_clients import HttpClients
from penstock.queue.server.new_connections import NewConnections
from penstock.queue.server.open_pool import OpenPool
from penstock.queue.server.read_pool import ReadPool
from penstock.queue.server.sync_pool import SyncPool
from penstock.queue.server.timeouts import SWEEP_MS, Timeouts
from penstock.queue.server.transport import PlainTransport, Transport

SCRATCH_BYTES: Final = 1024 * 1024
SCRATCH_LEAST: Final = 128 * 1024
WAIT_MS_MAX: Final = 60_000  # whatever is to be done sooner ends the wait
GATHERED_MAX: Final = 256  # with so many events nobody looks whether there are more before the step
IN: Final = select.POLLIN
OUT: Final = select.POLLOUT


class Loop:
    """Drives one node until `stop` is called."""

    def __init__(
        self,
        node: Node,
        config: BrokerConfig,
        clock: SteadyClock,
        pool: SyncPool,
    ) -> None:
        self._node = node
        self._config = config
        self._clock = clock
        self._pool = pool
        self._loads = ReadPool(pool.is_syncing)
        self._openings = OpenPool(config)
        self._poller = select.epoll()
        self._channels: dict[int, Channel] = {}
        self._by_number: dict[int, Channel] = {}
        self._strangers = NewConnections(self._poller, self._on_no_handles)
        self._known = 0  # clients that are no strangers
        self._is_knocked = False  # a stranger wants something
        self._https = HttpClients(node, config, clock, self._strangers.poller)
        self._pending: list[Event] = []
        self._syncs: list[Sync] = []
        self._next_number = 0
        self._sweep = Timeouts(config, self._close_late)
        self._closings = CloseLog()
        self._scratch = memoryview(bytearray(SCRATCH_BYTES))
        self._used = 0  # of the scratch, by frames that wait for the step
        self._unread: list[Channel] = []  # ready, but there was no room left; epoll itself knows no turns
        self._taken = 0  # bytes of these frames, and of those too long for the scratch
        self._signal_fd = -1
        self._is_stopping = False
        self._poller.register(pool.wake_fd, IN)
        self._poller.register(self._loads.wake_fd, IN)
        self._poller.register(self._openings.wake_fd, IN)
        self._perform: dict[type, Callable[[Any], None]] = {
            Sync: self._sync,
            Load: self._loads.submit,
            Open: self._openings.submit,
            Close: self._close,
            Pause: self._pause,
            Resume: self._resume,
            Note: self._note,
        }

    def listen(
        self,
        sock: socket.socket,
        *,
        http: bool = False,
        transport: Callable[[socket.socket], Transport] = PlainTransport,
    ) -> None:
        """`transport` makes what carries the bytes of each client of this listener; HTTP is always plain."""
        self._strangers.listen(sock, self._https.accept if http else partial(self._accept_client, transport))

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
            self.turn()
        self._finish()
        self._closings.flush()

    def turn(self, wait_ms_max: int = WAIT_MS_MAX) -> None:
        """One wake-up: all that is ready, and what arrives meanwhile, goes into one step; then a few strangers."""
        now_ms = self._clock.now_ms()
        wait_ms = min(self._next_wake_ms(now_ms) - now_ms, wait_ms_max)
        if self._strangers.is_resting:
            wait_ms = self._strangers.rest_on(wait_ms, self._clock.now_ns())
        ready = self._poller.poll(0 if self._pending or self._unread or wait_ms < 0 else wait_ms / 1000)
        if self._unread:
            left, self._unread = self._unread, []
            ready = [(channel.transport.fd, IN) for channel in left if self._may_read(channel)] + ready
        now_ms = self._clock.now_ms()
        events, self._pending = self._pending, []
        self._used = 0
        self._is_knocked = False
        while ready:
            before = len(events)
            self._take_in(ready, events, now_ms)
            is_more = not self._unread and before < len(events) <= GATHERED_MAX
            ready = self._poller.poll(0) if is_more else []
        if events or not self._is_knocked:
            self._step(events, now_ms)
        if self._is_knocked:
            self._serve_strangers(now_ms)

    def _serve_strangers(self, now_ms: int) -> None:
        """A few of them; if one went, was sent away or made the disk work, they rest while others are served."""
        strangers = self._strangers
        left, self._pending = self._pending, []
        self._step(left, now_ms)  # of those who are known, and what is due: not theirs to pay for
        began_ns, gone = self._clock.now_ns(), strangers.gone
        events: list[Event] = []
        self._take_in(strangers.ready(), events, now_ms)
        accepted, self._pending = self._pending, []
        has_synced = self._step(events + accepted, now_ms)
        if self._known and (has_synced or strangers.gone > gone):
            strangers.rest(began_ns, self._clock.now_ns())

    def _next_wake_ms(self, now_ms: int) -> int:
        deadline = self._node.next_deadline_ms
        if self._channels or self._https or self._closings.is_holding:
            if self._sweep.due_ms <= now_ms:
                if self._sweep.is_beginning:
                    self._https.sweep(now_ms)
                    self._closings.settle(now_ms)
                self._sweep.run(self._channels.values(), now_ms)
            deadline = min(deadline, self._sweep.due_ms)
        return deadline

    def _take_in(self, ready: list[tuple[int, int]], events: list[Event], now_ms: int) -> None:
        """What these descriptors have to say becomes events; those for whom there is no room come first next time."""
        for fd, mask in ready:
            channel = self._channels.get(fd)
            if channel is None:
                self._on_other(fd, events)
                continue
            if mask & OUT:
                self._send_more(channel, events)
            if mask & ~OUT and fd in self._channels:
                if SCRATCH_BYTES - self._used < SCRATCH_LEAST:
                    self._unread.append(channel)
                else:
                    self._receive(channel, events, now_ms)

    def _may_read(self, channel: Channel) -> bool:
        """Not if the step since it was found ready has closed or paused it."""
        return channel.number in self._by_number and not channel.is_paused and channel.closing is None

    def _step(self, events: list[Event], now_ms: int) -> bool:
        """Whether the disk had to sync for it."""
        has_synced = False
        while True:
            self._perform_all(self._node.step(events, now_ms))
            taken, self._taken, self._used = self._taken, 0, 0
            if not self._syncs:
                return has_synced
            has_synced = True
            syncs, self._syncs = self._syncs, []
            events = list(self._pool.run(syncs, taken))
            if not events:
                return True

    def _perform_all(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Reply):  # nearly all are
                self._reply(effect)
            else:
                self._perform[type(effect)](effect)

    def _receive(self, channel: Channel, events: list[Event], now_ms: int) -> None:
        if channel.is_paused or channel.closing is not None:
            self._drop(channel, events)  # a client that is not read wakes us only by an error or a hang-up
            return
        wanted_before = channel.transport.wants()
        try:
            frames, used = channel.receive(self._scratch[self._used :], now_ms)
        except (BlockingIOError, InterruptedError):
            self._watch_changed(channel, wanted_before, now_ms)  # a handshake took what came, and has to answer
            return
        except (EOFError, OSError):
            self._drop(channel, events)
            return
        except PeerError as error:
            self._send_away(channel, "warning", "frame", str(error), events)
            return
        self._used += used
        if channel.transport.pending():
            self._unread.append(channel)  # the poller does not know of it
        self._watch_changed(channel, wanted_before, now_ms)
        number = channel.number
        for frame in frames:
            events.append(Received(number, frame))
            self._taken += len(frame)
        if channel.is_stranger and frames:
            self._greet(channel)

    def _watch_changed(self, channel: Channel, wanted_before: int, now_ms: int) -> None:
        """The transport has begun or ended to wait for the socket; from now on the client has to take its bytes."""
        if channel.transport.wants() != wanted_before:
            channel.moved_ms = now_ms
            self._watch(channel)

    def _greet(self, channel: Channel) -> None:
        """Whose first request was no reason to close is no stranger from the second on."""
        if not channel.has_asked:
            channel.has_asked = True
            self._strangers.heard(channel)
            channel.frame_max = self._config.frame_bytes_max
            return
        self._strangers.let_go(channel)
        channel.is_stranger = False
        self._known += 1
        self._poller.register(channel.transport.fd, channel.wanted)

    def _poller_of(self, channel: Channel) -> select.epoll:
        return self._strangers.poller if channel.is_stranger else self._poller

    def _on_no_handles(self) -> None:
        self._strangers.gone += 1
        self._node.counters.closed_for("no_file_handles")
        reason = "no file handles are left (ulimit -n)"
        self._closings.tell("error", "connection refused", reason, self._clock.now_ms())

    def _accept_client(self, transport: Callable[[socket.socket], Transport], sock: socket.socket, peer: str) -> None:
        now_ms = self._clock.now_ms()
        if len(self._channels) >= self._config.connections_max and not self._make_room(now_ms):
            sock.close()
            self._strangers.gone += 1
            self._node.counters.closed_for("limit")
            self._closings.tell("warning", "connection refused", "connections_max are open", now_ms, peer=peer)
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._next_number += 1
        channel = Channel(self._next_number, transport(sock), peer, self._config.frame_bytes_max_first, now_ms)
        self._channels[channel.transport.fd] = channel
        self._by_number[channel.number] = channel
        self._strangers.take(channel, now_ms)
        self._pending.append(Connected(channel.number, peer))

    def _make_room(self, now_ms: int) -> bool:
        """Whether a stranger who had time to say something has given its place to a newcomer."""
        silent = self._strangers.most_silent(now_ms)
        if silent is not None:
            reason = "it said nothing, and others came (connections_max)"
            self._send_away(silent, "warning", "limit", reason, self._pending)
        return silent is not None

    def _on_other(self, fd: int, events: list[Event]) -> None:
        if fd == self._strangers.fd:
            self._is_knocked = True
        elif fd == self._pool.wake_fd:
            events.extend(self._pool.collect())
        elif fd == self._loads.wake_fd:
            events.extend(self._loads.collect())
        elif fd == self._openings.wake_fd:
            events.extend(self._openings.collect())
        elif fd in self._https:
            self._https.serve(fd)
        elif fd == self._signal_fd:
            with suppress(BlockingIOError):
                os.read(fd, 64)
        else:
            self._strangers.accept(fd)

    def _reply(self, effect: Reply) -> None:
        channel = self._by_number.get(effect.connection)
        if channel is None:
            return
        if effect.is_large:
            channel.owes_drained = True
        had_output = bool(channel.out)
        try:
            is_done = channel.send(effect.chunks)
        except OSError:
            self._drop(channel, self._pending)
            return
        if not is_done:
            if not had_output:
                channel.moved_ms = self._clock.now_ms()
                self._watch(channel)
        elif channel.owes_drained:
            channel.owes_drained = False
            self._pending.append(Drained(effect.connection))

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
        self._poller_of(channel).modify(channel.transport.fd, channel.wanted)

    def _sync(self, effect: Sync) -> None:
        self._syncs.append(effect)

    def _close(self, effect: Close) -> None:
        number, reason = effect
        channel = self._by_number.get(number)
        if channel is None:
            return
        self._closings.tell("warning", "connection closed", reason, self._clock.now_ms(), peer=channel.peer)
        channel.closing = reason
        if channel.is_sending:
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
            if not is_paused and channel.transport.pending():
                self._unread.append(channel)

    def _note(self, effect: Note) -> None:
        log_line(effect.level, effect.event, **effect.details)

    def _drop(self, channel: Channel, events: list[Event]) -> None:
        if self._by_number.pop(channel.number, None) is None:
            return
        fd = channel.transport.fd
        if channel.is_stranger:
            self._strangers.gone += 1
            self._strangers.let_go(channel)
        else:
            self._poller.unregister(fd)
            self._known -= 1
            if not self._known and self._strangers.is_resting:
                self._strangers.end_rest()
        del self._channels[fd]
        channel.transport.close()
        events.append(Disconnected(channel.number))

    def _close_late(self, channel: Channel, reason: str) -> bool:
        """False if it is gone already."""
        is_there = channel.number in self._by_number
        if is_there:
            self._send_away(channel, "info", "deadline", reason, self._pending)
        return is_there

    def _send_away(self, channel: Channel, level: str, kind: str, reason: str, events: list[Event]) -> None:
        self._closings.tell(level, "connection closed", reason, self._clock.now_ms(), peer=channel.peer)
        self._node.counters.closed_for(kind)
        self._drop(channel, events)

    def _finish(self) -> None:
        """Accept nothing more, make everything durable, answer who waits for that, and close."""
        self._strangers.shut()
        for channel in self._channels.values():
            channel.is_paused = True
            self._watch(channel)
        self._perform_all(self._node.sync_all())
        self._step([], self._clock.now_ms())
        deadline_ms = self._clock.now_ms() + self._config.stop_deadline_ms
        while (self._node.is_syncing or self._is_sending) and (left_ms := deadline_ms - self._clock.now_ms()) > 0:
            self.turn(min(left_ms, SWEEP_MS))
        if self._node.is_syncing:
            log_line("error", "stopped before every sync had ended (stop_deadline_ms); the next start recovers")
            return
        for channel in list(self._channels.values()):
            channel.transport.close()
        self._pool.stop()
        self._perform_all(self._node.shut_down())

    @property
    def _is_sending(self) -> bool:
        return any(channel.is_sending for channel in self._channels.values())

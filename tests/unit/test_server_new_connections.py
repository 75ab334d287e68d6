"""Who is served first: a loop with real sockets, turn by turn."""

from __future__ import annotations

import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from uuid import uuid4

import pytest

from penstock.config.broker import BrokerConfig
from penstock.kafka.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from penstock.queue.core.events import Pause, Resume
from penstock.queue.node import Node
from penstock.queue.server.clock import SteadyClock
from penstock.queue.server.disk import RealDisk
from penstock.queue.server.event_loop import Loop
from penstock.queue.server.sync_pool import SyncPool
from proof.abuse.raw_client import frame_of

ASK_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 7, -1)
LONG = struct.pack(">ihhih", 30_010, 18, 0, 7, 30_000) + bytes(30_000)
UNENDED = b"\x00\x00\x10"
GARBAGE = struct.pack(">i", 4) + bytes(4)
CROWD = 100
FEW = 8  # strangers in a turn
DEADLINE_S = 60.0


class HandClock(SteadyClock):
    """Goes on only when it is told to, and by `look_ns` whenever somebody looks at it closely."""

    def __init__(self) -> None:
        super().__init__()
        self.at_ms = time.time_ns() // 1_000_000
        self.look_ns = 0
        self._looked_ns = 0

    def now_ns(self) -> int:
        self._looked_ns += self.look_ns
        return self.at_ms * 1_000_000 + self._looked_ns

    def now_ms(self) -> int:
        return self.at_ms


class House:
    """A loop that somebody else turns, and its clients."""

    def __init__(self, folder: Path, callers: ExitStack, *, places: int = 10_000) -> None:
        config, disk = BrokerConfig(connections_max=places), RealDisk(str(folder))
        self.clock = HandClock()
        self.config = config
        self.node = Node(disk, config, ("127.0.0.1", 9092), uuid4, self.clock.now_ms())
        self.loop = Loop(self.node, config, self.clock, SyncPool(disk, config))
        self._callers = callers
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=2 * CROWD)
        self.loop.listen(self._listener)

    def call(self) -> socket.socket:
        """A connection that waits to be let in."""
        return self._callers.enter_context(socket.create_connection(self._listener.getsockname(), DEADLINE_S))

    def let_in(self) -> None:
        """Those who wait at the door, before anybody else is heard."""
        self.loop._strangers.accept(self._listener.fileno())

    def known_client(self) -> socket.socket:
        """One that has been answered twice."""
        client = self.call()
        for _ in range(2):
            client.sendall(ASK_VERSIONS)
            while not is_readable(client):
                self.loop.turn()
            answer(client)
        return client

    def crowd(self) -> list[socket.socket]:
        """Many that were let in and have said nothing."""
        before = len(self.node.connections)
        callers = [self.call() for _ in range(CROWD)]
        while len(self.node.connections) < before + CROWD:
            self.loop.turn()
        return callers


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    with ExitStack() as callers:
        made = House(tmp_path, callers)
        yield made
        made.loop.stop()
        made.loop.run()


@pytest.fixture
def full_house(tmp_path: Path) -> Iterator[House]:
    """It has places for a crowd and one more."""
    with ExitStack() as callers:
        made = House(tmp_path, callers, places=CROWD + 1)
        yield made
        made.loop.stop()
        made.loop.run()


def answer(client: socket.socket) -> bytes:
    (size,) = struct.unpack(">i", client.recv(4, socket.MSG_WAITALL))
    return client.recv(size, socket.MSG_WAITALL)


def is_readable(client: socket.socket) -> bool:
    """Whether there is an answer, or the end."""
    return bool(select.select([client], [], [], 0)[0])


def turns_until_all_are_readable(house: House, callers: list[socket.socket]) -> int:
    turns = 0
    while not all(map(is_readable, callers)):
        house.loop.turn()
        turns += 1
    return turns


def test_a_known_client_is_answered_before_a_crowd_of_strangers(house: House) -> None:
    """In one turn: all who are known, and then a few of those who have not said anything sensible yet."""
    known = house.known_client()
    strangers = house.crowd()
    for stranger in strangers:
        stranger.sendall(ASK_VERSIONS)
    for turn in range(1, CROWD):
        known.sendall(ASK_VERSIONS)
        house.loop.turn()
        assert answer(known)[:4] == struct.pack(">i", 7)
        assert sum(map(is_readable, strangers)) <= turn * FEW
    assert all(map(is_readable, strangers)), "a busy client must not keep strangers out"


def test_a_crowd_is_let_in_bit_by_bit(house: House) -> None:
    """A few of those who wait in each turn, and all of them in the end."""
    strangers = [house.call() for _ in range(CROWD)]
    for turn in range(1, CROWD):
        house.loop.turn()
        assert len(house.node.connections) <= turn * FEW
        if len(house.node.connections) == len(strangers):
            break
    assert len(house.node.connections) == len(strangers)


def test_a_client_is_no_stranger_once_its_first_request_made_sense(house: House) -> None:
    """From the second request on a client does not wait behind a crowd any more."""
    newcomer = house.call()
    newcomer.sendall(ASK_VERSIONS)
    turns_until_all_are_readable(house, [newcomer])
    answer(newcomer)
    newcomer.sendall(ASK_VERSIONS)
    turns_until_all_are_readable(house, [newcomer])
    answer(newcomer)

    for stranger in house.crowd():
        stranger.sendall(UNENDED)
    newcomer.sendall(ASK_VERSIONS)
    house.loop.turn()
    assert is_readable(newcomer)


def test_a_crowd_that_is_late_is_closed_bit_by_bit(house: House) -> None:
    """All of them in the end, while a known client is answered in every turn."""
    known = house.known_client()
    late = house.crowd()
    for caller in late:
        caller.sendall(UNENDED)
    for _ in range(CROWD):
        known.sendall(ASK_VERSIONS)
        house.loop.turn()
        answer(known)
    assert not any(map(is_readable, late))

    house.clock.at_ms += house.config.request_deadline_ms + 1000
    closed = 0
    while closed < CROWD:
        known.sendall(ASK_VERSIONS)
        house.loop.turn()
        assert is_readable(known)
        answer(known)
        before, closed = closed, sum(map(is_readable, late))
        assert closed - before <= FEW


def test_garbage_that_never_ends_does_not_keep_the_late_from_being_closed(house: House) -> None:
    """In every turn somebody is closed, and still the deadline of a silent caller is kept."""
    late = house.call()
    late.sendall(UNENDED)
    for _ in range(4):
        house.call().sendall(GARBAGE)
        house.loop.turn()
    house.clock.at_ms += house.config.request_deadline_ms + 1000
    for _ in range(20):
        house.call().sendall(GARBAGE)
        house.loop.turn()
    assert is_readable(late)


def rest(house: House, *, look_us: int = 10_000) -> None:
    """Strangers have just begun to rest, after a turn of so many microseconds in which one was sent away."""
    house.clock.look_ns = look_us * 1_000
    garbage = house.call()
    garbage.sendall(GARBAGE)
    for _ in range(CROWD):
        if is_readable(garbage):
            break
        house.loop.turn(0)
    assert is_readable(garbage)
    house.clock.look_ns = 0


def newcomer(house: House) -> socket.socket:
    caller = house.call()
    caller.sendall(ASK_VERSIONS)
    return caller


def is_heard(house: House, caller: socket.socket) -> bool:
    for _ in range(FEW):
        house.loop.turn(0)
    return is_readable(caller)


def test_strangers_that_are_sent_away_cost_all_of_them_a_rest(house: House) -> None:
    """Three times as long as that turn was; whoever is known is served meanwhile."""
    known = house.known_client()
    rest(house)
    waiting = newcomer(house)
    for _ in range(CROWD):
        known.sendall(ASK_VERSIONS)
        house.loop.turn(0)
        assert answer(known)
    house.clock.at_ms += 29
    assert not is_heard(house, waiting)

    house.clock.at_ms += 1
    assert is_heard(house, waiting)


def test_a_stranger_that_makes_the_disk_work_costs_a_rest(house: House) -> None:
    house.known_client()
    house.clock.look_ns = 10_000_000
    maker = house.call()
    topic = CreatableTopic("new", num_partitions=1, replication_factor=1)
    request = frame_of(CreateTopicsRequest([topic], 10_000), 5)
    maker.sendall(struct.pack(">i", len(request)) + request)
    turns_until_all_are_readable(house, [maker])
    house.clock.look_ns = 0

    waiting = newcomer(house)
    assert not is_heard(house, waiting)
    house.clock.at_ms += 50
    assert is_heard(house, waiting)


def test_a_rest_is_short_however_long_the_turn_was(house: House) -> None:
    """Pages for operators wait with strangers, and a machine may have stood still."""
    house.known_client()
    rest(house, look_us=10_000_000)
    waiting = newcomer(house)
    assert not is_heard(house, waiting)
    house.clock.at_ms += 50
    assert is_heard(house, waiting)


def test_the_rest_ends_when_nobody_known_is_left(house: House) -> None:
    known = house.known_client()
    rest(house)
    waiting = newcomer(house)
    known.close()
    assert is_heard(house, waiting)


def test_short_turns_are_paid_for_together(house: House) -> None:
    """Three turns of a tenth of a millisecond owe less than the poller can wait: the fourth costs a rest."""
    house.known_client()
    for _ in range(3):
        rest(house, look_us=100)
    assert is_heard(house, newcomer(house))
    rest(house, look_us=100)
    waiting = newcomer(house)
    assert not is_heard(house, waiting)
    house.clock.at_ms += 2
    assert is_heard(house, waiting)


def test_strangers_do_not_rest_for_nobody(house: House) -> None:
    """Where nobody known is connected, garbage and newcomers are dealt with as quickly as can be."""
    rest(house)
    assert is_heard(house, newcomer(house))


def test_silent_strangers_give_way_to_newcomers(full_house: House) -> None:
    """The one who came first goes first, once it had time to speak; who is known stays."""
    known = full_house.known_client()
    silent = full_house.crowd()
    full_house.clock.at_ms += 1000
    for number in range(3):
        caller = newcomer(full_house)
        turns_until_all_are_readable(full_house, [caller])
        answer(caller)
        full_house.clock.at_ms += 100  # newcomers may rest meanwhile
        assert [is_readable(one) for one in silent] == [True] * (number + 1) + [False] * (CROWD - number - 1)
    assert len(full_house.node.connections) == CROWD + 1
    known.sendall(ASK_VERSIONS)
    full_house.loop.turn()
    assert answer(known)


def test_who_has_said_something_keeps_its_place(full_house: House) -> None:
    """One that was answered once, and one whose request nobody has read yet: not the silent ones' fate."""
    answered = newcomer(full_house)
    turns_until_all_are_readable(full_house, [answered])
    answer(answered)
    unheard, *silent = full_house.crowd()
    full_house.clock.at_ms += 1000
    unheard.sendall(ASK_VERSIONS)
    newcomers = [newcomer(full_house) for _ in range(2)]
    full_house.let_in()
    turns_until_all_are_readable(full_house, [unheard, *newcomers])
    for heard in (unheard, *newcomers):
        assert answer(heard)[:4] == struct.pack(">i", 7)
    assert not is_readable(answered)
    assert [is_readable(one) for one in silent] == [True] * 2 + [False] * (CROWD - 3)


def test_who_has_only_just_come_gives_way_to_nobody(full_house: House) -> None:
    """Else a flood of callers would throw out every client before its first word."""
    full_house.known_client()
    silent = full_house.crowd()
    full_house.clock.at_ms += 999
    refused = newcomer(full_house)
    turns_until_all_are_readable(full_house, [refused])
    with pytest.raises(ConnectionResetError):  # closed with its request unread
        refused.recv(1)
    assert not any(map(is_readable, silent))
    assert len(full_house.node.connections) == CROWD + 1


class Busy:
    """A known client that always has more to say than is read of it in a turn."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._unsent = b""

    def push(self) -> None:
        """Say more, and take the answers."""
        with suppress(BlockingIOError):
            while True:
                self._unsent = self._unsent or LONG
                self._unsent = self._unsent[self._sock.send(self._unsent) :]
        with suppress(BlockingIOError):
            while self._sock.recv(1 << 20):
                pass


def test_busy_clients_keep_nobody_else_waiting(house: House) -> None:
    """In one turn so much is read as there is room for: whoever was left comes first in the next one."""
    busy = [Busy(house.known_client()) for _ in range(48)]
    other = house.known_client()
    for each in busy:
        each.push()
    other.sendall(ASK_VERSIONS)
    stranger = house.call()
    stranger.sendall(ASK_VERSIONS)
    for _ in range(20):
        house.loop.turn()
        for each in busy:
            each.push()
    assert is_readable(other)
    assert is_readable(stranger)


def test_who_was_left_and_is_paused_meanwhile_is_not_hung_up_on(house: House) -> None:
    """A producer that is too far ahead is read again when it has its answers; hung up on, it would send all anew."""
    client = house.known_client()
    (number,) = house.node.connections
    channel = house.loop._by_number[number]
    house.loop._unread.append(channel)
    house.loop._perform_all([Pause(number)])
    client.sendall(ASK_VERSIONS)
    house.loop.turn(wait_ms_max=0)
    assert not is_readable(client)
    house.loop._perform_all([Resume(number)])
    house.loop.turn()
    assert answer(client)[:4] == struct.pack(">i", 7)

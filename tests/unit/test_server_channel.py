"""A client's socket: frames wherever the stream is cut, limits before memory, and nothing sent twice."""

from __future__ import annotations

import array
import fcntl
import random
import socket
import termios
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress

import pytest

from penstock.errors import PeerError
from penstock.queue.server.channel import Channel
from penstock.queue.server.transport import PlainTransport

NOW = 1_000


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, Channel]]:
    """A client's end, and the broker's end as a channel of frames up to 4 MiB."""
    client, server = socket.socketpair()
    server.setblocking(False)
    client.settimeout(20)
    with client, server:
        yield client, Channel(1, PlainTransport(server), "peer", 4 << 20, NOW)


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def receive(channel: Channel, scratch: memoryview, now_ms: int = NOW) -> list[bytes]:
    frames, used = channel.receive(scratch, now_ms)
    assert used <= len(scratch)
    return [bytes(frame) for frame in frames]


def test_frames_come_whole_wherever_the_stream_is_cut(pair: tuple[socket.socket, Channel]) -> None:
    """At every byte, in two and in three pieces."""
    client, channel = pair
    bodies = [b"a", b"bc" * 3, bytes(range(9))]
    stream = framed(*bodies)
    scratch = memoryview(bytearray(100))
    for first in range(1, len(stream)):
        for second in range(first, len(stream), 3):
            found = []
            for piece in (stream[:first], stream[first:second], stream[second:]):
                client.sendall(piece)
                got = 0
                while piece and got < len(piece):
                    before = client_pending(channel)
                    found += receive(channel, scratch)
                    got += before - client_pending(channel)
            assert found == bodies
            assert channel.began_ms == 0


def client_pending(channel: Channel) -> int:
    """Bytes that wait in the socket."""
    buffer = array.array("i", [0])
    fcntl.ioctl(channel.transport.fd, termios.FIONREAD, buffer)
    return buffer[0]


def test_a_frame_larger_than_the_scratch_is_collected(pair: tuple[socket.socket, Channel]) -> None:
    """Whatever its size, in whatever pieces it comes."""
    client, channel = pair
    client.setblocking(False)
    chance = random.Random(5)
    bodies = [chance.randbytes(size) for size in (50, 3_000_000, 1, 100_000)]
    stream = memoryview(framed(*bodies))
    scratch = memoryview(bytearray(10_000))
    found: list[bytes] = []
    while len(found) < len(bodies):
        if stream:
            with suppress(BlockingIOError):
                stream = stream[client.send(stream[: chance.randrange(1, 200_000)]) :]
        try:
            found += receive(channel, scratch)
        except BlockingIOError:
            assert stream
    assert found == bodies


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"\x00\x00\x00\x00", "0 bytes"),
        (b"\xff\xff\xff\xff", "-1 bytes"),
        (b"\x7f\xff\xff\xff", "are allowed"),
        (b"\x00\x40\x00\x01", "are allowed"),
        (bytes.fromhex("160301020001"), "TLS"),
    ],
)
def test_a_frame_of_no_sensible_size_is_refused_at_once(
    pair: tuple[socket.socket, Channel], raw: bytes, why: str
) -> None:
    """From its length alone; nothing is allocated for it."""
    client, channel = pair
    client.sendall(raw)
    scratch = memoryview(bytearray(100))
    tracemalloc.start()
    try:
        with pytest.raises(PeerError, match=why):
            channel.receive(scratch, NOW)
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


def test_memory_grows_with_what_came_not_with_what_was_announced(pair: tuple[socket.socket, Channel]) -> None:
    """Four million bytes announced, ten sent."""
    client, channel = pair
    client.sendall((4 << 20).to_bytes(4, "big") + bytes(10))
    scratch = memoryview(bytearray(100))
    tracemalloc.start()
    try:
        assert receive(channel, scratch) == []
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


def test_the_time_of_a_frame_begins_with_its_first_byte(pair: tuple[socket.socket, Channel]) -> None:
    """A byte now and then does not buy more time; the next frame has a time of its own."""
    client, channel = pair
    scratch = memoryview(bytearray(100))
    for number, byte in enumerate(framed(b"abc")[:6]):
        client.sendall(bytes([byte]))
        assert receive(channel, scratch, NOW + number) == []
        assert channel.began_ms == NOW
    client.sendall(b"c")
    assert receive(channel, scratch, NOW + 6) == [b"abc"]
    assert channel.began_ms == 0
    client.sendall(b"\0")
    receive(channel, scratch, NOW + 7)
    client.sendall(framed(b"abc")[1:] + framed(b"next")[:5])
    assert receive(channel, scratch, NOW + 50) == [b"abc"]
    assert channel.began_ms == NOW + 50


def test_the_end_of_the_stream_is_told(pair: tuple[socket.socket, Channel]) -> None:
    """Between frames, and within one."""
    client, channel = pair
    client.sendall(framed(b"abcdef")[:7])
    scratch = memoryview(bytearray(100))
    assert receive(channel, scratch) == []
    client.close()
    with pytest.raises(EOFError):
        channel.receive(scratch, NOW)


@pytest.mark.parametrize("sizes", [[10], [10, 20], [5_000_000], [100, 5_000_000, 0, 7], [700] * 3000])
def test_all_that_is_sent_arrives_once_and_in_order(pair: tuple[socket.socket, Channel], sizes: list[int]) -> None:
    """However little the client takes at a time, and although more is sent meanwhile."""
    client, channel = pair
    chance = random.Random(1)
    chunks = [chance.randbytes(size) for size in sizes]
    is_done = channel.send(list(chunks))
    is_done = channel.send([b"more", b" to come"]) and is_done
    want = b"".join(chunks) + b"more to come"
    got = b""
    while len(got) < len(want):
        got += client.recv(300_000)
        if not is_done:
            is_done = channel.send_more()
    assert got == want
    assert is_done
    assert not channel.out

"""A queue's addresses stand in one value, and one module makes clients from it."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import penstock
from penstock.client.factory import client_settings, open_socket, reader_settings, spark_options
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget

PACKAGE = Path(penstock.__file__).parent
# Clients of drills play users' programs: they take nothing from ours.
OF_USERS = ("drills",)
FACTORY = "client/factory.py"


@pytest.fixture
def unused_port() -> Iterator[int]:
    """Bound, and nothing listens there."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@pytest.fixture
def listening_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_target_is_written_as_it_is_read() -> None:
    text = "127.0.0.1:9092,[::1]:9093,queue.example:9094"
    assert str(KafkaTarget.parse(text)) == text
    assert str(KafkaTarget.parse(text).at("::2", 1)) == "[::2]:1"


@pytest.mark.parametrize("text", ["", "9092", "localhost:x", "a:1,,b:2", "::1:9092"])
def test_a_target_without_addresses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"HOST:PORT|the port must be|brackets"):
        KafkaTarget.parse(text)


def test_a_target_survives_the_file_for_child_processes() -> None:
    target = KafkaTarget.parse("127.0.0.1:1,[::1]:2")
    assert msgspec.json.decode(msgspec.json.encode(target), type=KafkaTarget) == target


def test_both_dialects_name_every_broker() -> None:
    target = KafkaTarget.parse("a.example:1,b.example:2")
    assert client_settings(target)["bootstrap.servers"] == "a.example:1,b.example:2"
    assert spark_options(target) == {"kafka.bootstrap.servers": "a.example:1,b.example:2"}


def test_a_socket_goes_to_the_first_broker_that_listens(unused_port: int, listening_port: int) -> None:
    target = KafkaTarget((("127.0.0.1", unused_port), ("127.0.0.1", listening_port)))
    with open_socket(target, 10) as connection:
        assert connection.getpeername()[1] == listening_port
    with pytest.raises(PenstockError, match=rf"127.0.0.1:{unused_port} does not answer \(.*refused"):
        open_socket(KafkaTarget((("127.0.0.1", unused_port),)), 10)


def test_only_the_factory_connects_to_the_queue() -> None:
    """A setting that each client needs, such as a password, has one place."""
    words = re.compile(r"bootstrap[._]servers|socket\.create_connection")
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if words.search(path.read_text()) and path.relative_to(PACKAGE).parts[0] not in OF_USERS
    }
    assert found == {FACTORY}


def test_readers_see_only_what_is_committed() -> None:
    """Deliveries promise it, whatever a client library's default is."""
    assert reader_settings(KafkaTarget.parse("a.example:1"), buffered_kib=64)["isolation.level"] == "read_committed"

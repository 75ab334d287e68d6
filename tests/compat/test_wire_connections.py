"""One connection: answers in order, none where none is due, and what ends it."""

from __future__ import annotations

import contextlib
import socket
import struct

import pytest
from asking.batches import batch_of, lines
from asking.connection import DEADLINE_S, ClosedByBroker, Connection
from asking.requests import LATEST, create_topic, fetch_request, list_offset, produce_request

from penstock.errors import ErrorCode
from penstock.kafka.wire.apis import APIS, ApiKey
from penstock.kafka.wire.header import encode_request_header
from penstock.kafka.wire.message import decode
from penstock.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.kafka.wire.messages.fetch import FetchRequest, FetchResponse
from penstock.kafka.wire.messages.metadata import MetadataRequest, MetadataResponse
from penstock.kafka.wire.messages.produce import ProduceRequest, ProduceResponse

ME = ApiVersionsRequest(client_software_name="compat", client_software_version="1.0")
BATCH = batch_of(lines("one"))


def test_acks_0_has_no_answer(connection: Connection, topic: str) -> None:
    """What is asked behind it is answered next, and the record is there."""
    create_topic(connection, topic)
    connection.send(produce_request(topic, BATCH, acks=0), 9)
    asked = connection.send(ME, 3)
    assert connection.receive(ApiVersionsRequest, 3)[0] == asked
    connection.send(fetch_request(topic, 0, max_wait_ms=10_000), 12)
    _, answer = connection.receive(FetchRequest, 12)
    assert isinstance(answer, FetchResponse)
    assert answer.responses[0].partitions[0].high_watermark == 1


def test_a_refused_produce_with_acks_0_ends_the_connection(connection: Connection, topic: str) -> None:
    """There is no other way to tell such a producer that something is wrong."""
    create_topic(connection, topic)
    connection.send(produce_request(topic, BATCH, acks=0, partition=9), 9)
    connection.send(ME, 3)
    with pytest.raises(ClosedByBroker):
        connection.receive(ApiVersionsRequest, 3)


def test_acks_that_do_not_exist_are_refused(connection: Connection, topic: str) -> None:
    """Only 0, 1 and all (-1)."""
    create_topic(connection, topic)
    answer = connection.ask(produce_request(topic, BATCH, acks=2), 9, ProduceResponse)
    assert answer.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert list_offset(connection, topic, LATEST) == (0, -1, 0)


def test_pipelined_requests_are_answered_in_order(connection: Connection, topic: str) -> None:
    """A fetch that waits holds back the answers behind it, on its connection."""
    create_topic(connection, topic)
    sent = [
        connection.send(produce_request(topic, BATCH), 9),
        connection.send(fetch_request(topic, 1, max_wait_ms=300), 12),
        connection.send(produce_request(topic, BATCH), 9),
        connection.send(MetadataRequest(topics=[]), 12),
        connection.send(ME, 3),
    ]
    kinds = [
        (ProduceRequest, 9),
        (FetchRequest, 12),
        (ProduceRequest, 9),
        (MetadataRequest, 12),
        (ApiVersionsRequest, 3),
    ]
    assert [connection.receive(kind, version)[0] for kind, version in kinds] == sent


def test_hundred_requests_in_one_packet_are_all_answered(connection: Connection) -> None:
    """However the bytes are cut, requests are found in them."""
    sent = [connection.send(MetadataRequest(topics=[]), 12) for _ in range(100)]
    assert [connection.receive(MetadataRequest, 12)[0] for _ in range(100)] == sent


def test_a_request_byte_by_byte_is_answered(broker_address: str) -> None:
    """A slow client is still a client."""
    frame = encode_request_header(ApiKey.METADATA, 1, 7, "slow") + struct.pack(">i", 0)
    host, _, port = broker_address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as slow:
        slow.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in struct.pack(">i", len(frame)) + frame:
            slow.send(bytes([byte]))
        head = slow.recv(8, socket.MSG_WAITALL)
    assert struct.unpack(">ii", head)[1] == 7


@pytest.mark.parametrize("version", [5, 99, -1])
def test_api_versions_in_an_unknown_version_is_answered_in_version_0(connection: Connection, version: int) -> None:
    """KIP-511: the client learns which version of ApiVersions it may use, and asks again on the same connection."""
    connection.send_frame(struct.pack(">hhih", ApiKey.API_VERSIONS, version, 7, -1) + b"\0\0\0\0")
    frame = connection.receive_frame()
    assert frame[:4] == struct.pack(">i", 7)
    answer = decode(ApiVersionsResponse, frame, 0, 4)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert (18, 0, 4) in [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys]
    assert connection.ask(ME, 4, ApiVersionsResponse).error_code == 0


@pytest.mark.parametrize("api", [api for api in APIS.values() if api.key != ApiKey.API_VERSIONS], ids=lambda a: a.name)
@pytest.mark.parametrize("step", [1, -1], ids=["newer", "older"])
def test_any_other_api_in_an_unknown_version_ends_the_connection(broker_address: str, api: object, step: int) -> None:
    """Nobody can know what the client would understand."""
    assert isinstance(api, type(APIS[0]))
    version = api.max_version + 1 if step > 0 else api.min_version - 1
    with Connection(broker_address) as connection:
        connection.send_frame(struct.pack(">hhih", api.key, version, 7, -1) + b"\0" * 30)
        with pytest.raises(ClosedByBroker):
            connection.receive_frame()


@pytest.mark.parametrize(
    "raw",
    [
        struct.pack(">i", -1),
        struct.pack(">i", 2**31 - 1),
        struct.pack(">ihhih", 10, 999, 0, 7, -1),
        struct.pack(">ihhih", 10, 3, 12, 7, -1),
        struct.pack(">ihhihi", 14, 3, 1, 7, -1, 2**31 - 1),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 40,
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
    ids=["negative", "huge", "unknown API", "no body", "array too long", "TLS hello", "HTTP"],
)
def test_nonsense_ends_the_connection(broker_address: str, raw: bytes) -> None:
    """And no other: the broker serves on."""
    host, _, port = broker_address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=DEADLINE_S) as stranger:
        stranger.sendall(raw)
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
    with Connection(broker_address) as connection:
        assert connection.ask(MetadataRequest(topics=[]), 12, MetadataResponse).brokers

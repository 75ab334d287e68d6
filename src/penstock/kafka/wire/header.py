"""What stands before the body of every request and response."""

from __future__ import annotations

from typing import NamedTuple

from penstock.errors import PeerError
from penstock.kafka.wire.apis import APIS, ApiKey
from penstock.kafka.wire.types import Reader, Writer
from penstock.ports import Buffer


class RequestHeader(NamedTuple):
    """Who asks for what; the body starts `size` bytes into the frame."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    size: int


def decode_request_header(frame: Buffer) -> RequestHeader:
    """The header of a request; PeerError if its API is unknown, as then nobody knows where it ends."""
    reader = Reader(frame)
    key, version, correlation_id = reader.int16(), reader.int16(), reader.int32()
    api = APIS.get(key)
    if api is None:
        raise PeerError(f"there is no API {key}")
    # The client id never became compact, so that a broker reads it whatever the version.
    client_id = reader.nullable_string()
    if version >= api.flexible:
        reader.tags()
    return RequestHeader(key, version, correlation_id, client_id, reader.position)


def encode_request_header(key: int, version: int, correlation_id: int, client_id: str | None) -> bytes:
    """The header of a request to an API in the table."""
    writer = Writer()
    writer.int16(key)
    writer.int16(version)
    writer.int32(correlation_id)
    writer.nullable_string(client_id)
    if version >= APIS[key].flexible:
        writer.tags([])
    return bytes(writer)


def encode_response_header(key: int, version: int, correlation_id: int) -> bytes:
    """The header of a response to a request of this API and version."""
    raw = correlation_id.to_bytes(4, "big", signed=True)
    return raw + b"\x00" if _is_flexible(key, version) else raw


def decode_response_header(frame: Buffer, key: int, version: int) -> tuple[int, int]:
    """The correlation id of a response, and where its body starts."""
    reader = Reader(frame)
    correlation_id = reader.int32()
    if _is_flexible(key, version):
        reader.tags()
    return correlation_id, reader.position


def _is_flexible(key: int, version: int) -> bool:
    # KIP-511: a client that asked for too high a version must still be able to read the answer.
    return key != ApiKey.API_VERSIONS and version >= APIS[key].flexible

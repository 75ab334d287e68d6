"""What Kafka's own client library wrote, we read; what we write back is the same to the byte."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from penstock.kafka.wire import fields
from penstock.kafka.wire.apis import APIS
from penstock.kafka.wire.fields import Column
from penstock.kafka.wire.header import (
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
)
from penstock.kafka.wire.message import Message, Struct, columns, decode, encode

GOLDEN = Path(__file__).parents[1] / "compat" / "golden"
MESSAGES: dict[str, type[Message]] = {cls.__name__: cls for api in APIS.values() for cls in (api.request, api.response)}


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    return found


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def as_struct(cls: type[Struct], tree: dict[str, Any]) -> Any:
    """Kafka's JSON tree of a message as our values; what the tree leaves out has its default."""
    table = dict(columns(cls))
    named = {snake_case(name): value for name, value in tree.items()}
    return cls(**{name: as_value(table[name], value) for name, value in named.items()})


def as_value(column: Column, value: Any) -> Any:
    if value is None:
        return None
    if column.is_array:
        return [as_element(column.of, each) for each in value]
    return as_element(column.of, value)


def as_element(of: Any, value: Any) -> Any:
    if of is fields.uuid:
        return UUID(bytes=base64.urlsafe_b64decode(value + "=="))
    if of is fields.data:
        return base64.b64decode(value)
    return value if isinstance(of, fields.Scalar) else as_struct(of, value)


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_message_is_read_and_written_as_kafka_does(api: Any) -> None:
    """Each golden decodes to its values, and these encode to its bytes."""
    for case in cases(api.name):
        cls, version, raw = MESSAGES[case["message"]], case["version"], bytes.fromhex(case["bytes"])
        expected = as_struct(cls, case["value"])
        told = f"{case['message']} version {version}, {case['case']}"

        assert decode(cls, raw, version) == expected, told
        assert encode(expected, version).hex() == raw.hex(), told


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_the_goldens_cover_every_version(api: Any) -> None:
    """No version is served whose bytes were never compared with Kafka's."""
    covered = {(case["message"], case["version"]) for case in cases(api.name)}
    for cls in (api.request, api.response):
        first, last = cls.versions
        assert {(cls.__name__, version) for version in range(first, last + 1)} <= covered


def bare(cls: type[Struct], version: int) -> Any:
    """All defaults, but one struct in each array of structs, down to the deepest."""
    message = cls()
    for name, column in columns(cls):
        if not column.is_in(version) or isinstance(column.of, fields.Scalar):
            continue
        if column.is_array:
            setattr(message, name, [bare(column.of, version)])
        elif getattr(message, name) is not None:
            setattr(message, name, bare(column.of, version))
    return message


def test_our_defaults_are_kafkas() -> None:
    """What nobody filled in means the same on both sides, at every depth."""
    for api in APIS.values():
        for case in cases(api.name):
            cls, version = MESSAGES[case["message"]], case["version"]
            if case["case"] == "defaults":
                assert encode(cls(), version).hex() == case["bytes"], (case["message"], version)
            if case["case"] == "bare":
                assert encode(bare(cls, version), version).hex() == case["bytes"], (case["message"], version)


def test_the_goldens_leave_no_field_at_its_default() -> None:
    """A full case of each version says something else than the default in every field it carries."""
    for api in APIS.values():
        for case in cases(api.name):
            cls = MESSAGES[case["message"]]
            if case["case"] == "full":
                message, default = as_struct(cls, case["value"]), cls()
                for name, column in columns(cls):
                    if column.is_in(case["version"]):
                        assert getattr(message, name) != getattr(default, name), (case["message"], name)


def test_request_headers_are_kafkas() -> None:
    """Header version 2 goes with flexible versions, version 1 with the others."""
    for case in cases("Header"):
        if case["message"] != "RequestHeader" or case["case"] == "defaults":
            continue
        value, raw = case["value"], bytes.fromhex(case["bytes"])
        version = 9 if case["version"] == 2 else 8
        mine = encode_request_header(3, version, value["correlationId"], value["clientId"])
        # Kafka's golden names an API and a version that do not exist; the rest must be equal.
        assert mine[4:] == raw[4:]

        header = decode_request_header(mine + b"body")
        assert header.client_id == value["clientId"]
        assert header.correlation_id == value["correlationId"]
        assert (header.api_key, header.api_version) == (3, version)
        assert header.size == len(mine)


def test_response_headers_are_kafkas() -> None:
    """A flexible response has tags behind its correlation id; ApiVersions never has."""
    for case in cases("Header"):
        if case["message"] == "ResponseHeader":
            correlation_id, raw = case["value"]["correlationId"], bytes.fromhex(case["bytes"])
            version = 9 if case["version"] == 1 else 8
            assert encode_response_header(3, version, correlation_id) == raw
            assert decode_response_header(raw + b"body", 3, version) == (correlation_id, len(raw))
    assert encode_response_header(18, 4, 7) == b"\x00\x00\x00\x07"

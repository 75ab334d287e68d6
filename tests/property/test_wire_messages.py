"""Every message at every version: it comes back as it went, and no bytes can do harm."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import PeerError
from penstock.kafka.wire import fields
from penstock.kafka.wire.apis import APIS
from penstock.kafka.wire.fields import Column, Scalar
from penstock.kafka.wire.header import decode_request_header
from penstock.kafka.wire.message import Message, Struct, columns, decode, encode

MESSAGES = [
    pytest.param(cls, version, id=f"{cls.__name__}-{version}")
    for api in APIS.values()
    for cls in (api.request, api.response)
    for version in range(cls.versions[0], cls.versions[1] + 1)
]
CLASSES = {cls.__name__: cls for api in APIS.values() for cls in (api.request, api.response)}
GOLDEN = Path(__file__).parents[1] / "compat" / "golden"
FLIPS = 30
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    fields.int8.name: st.integers(-(2**7), 2**7 - 1),
    fields.int16.name: st.integers(-(2**15), 2**15 - 1),
    fields.uint16.name: st.integers(0, 2**16 - 1),
    fields.int32.name: st.integers(-(2**31), 2**31 - 1),
    fields.int64.name: st.integers(-(2**63), 2**63 - 1),
    fields.float64.name: st.floats(allow_nan=False),
    fields.boolean.name: st.booleans(),
    fields.uuid.name: st.uuids(),
    fields.string.name: st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    fields.data.name: st.binary(max_size=200),
}
STRUCTS: dict[tuple[type[Struct], int], st.SearchStrategy[Any]] = {}


def structs(cls: type[Struct], version: int) -> st.SearchStrategy[Any]:
    """Values that this version can carry."""
    # Making a strategy takes longer than drawing from it.
    if (cls, version) not in STRUCTS:
        in_version = {name: values(column, version) for name, column in columns(cls) if column.is_in(version)}
        STRUCTS[cls, version] = st.builds(cls, **in_version)
    return STRUCTS[cls, version]


def values(column: Column, version: int) -> st.SearchStrategy[Any]:
    of = column.of
    one = SCALARS[of.name] if isinstance(of, Scalar) else structs(of, version)
    one = st.lists(one, max_size=3) if column.is_array else one
    return st.none() | one if column.is_nullable_in(version) else one


def mangled(raw: bytes) -> st.SearchStrategy[bytes]:
    """The bytes of a message with a few of them changed, cut out or doubled."""

    def mangle(edits: list[tuple[int, int, bytes]]) -> bytes:
        bad = raw
        for at, length, put in edits:
            at %= len(bad) + 1
            bad = bad[:at] + put + bad[at + length :]
        return bad

    edit = st.tuples(st.integers(0, 2**16), st.integers(0, 8), st.binary(max_size=8))
    return st.lists(edit, min_size=1, max_size=4).map(mangle)


def only_peer_errors(decoder: Callable[[bytes], object], raw: bytes) -> None:
    try:
        decoder(raw)
    except PeerError:
        return


@pytest.mark.parametrize(("cls", "version"), MESSAGES)
@settings(max_examples=8, deadline=None)
@given(chance=st.data())
def test_a_message_comes_back_as_it_went(cls: type[Message], version: int, chance: st.DataObject) -> None:
    """Whatever a version can carry, it carries whole."""
    message = chance.draw(structs(cls, version))
    assert decode(cls, encode(message, version), version) == message


@pytest.mark.parametrize(("cls", "version"), MESSAGES)
@settings(max_examples=8, deadline=None)
@given(chance=st.data())
def test_damaged_bytes_blame_the_peer(cls: type[Message], version: int, chance: st.DataObject) -> None:
    """Damage is either read as another message or refused with PeerError, never another way."""
    raw = chance.draw(mangled(encode(chance.draw(structs(cls, version)), version)))
    only_peer_errors(lambda raw: decode(cls, raw, version), raw)


@pytest.mark.parametrize("golden", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_flipped_bits_and_garbage_blame_the_peer(golden: Path) -> None:
    """Full messages of Kafka's with bytes overwritten, and noise, raise nothing but PeerError."""
    chance = random.Random(golden.stem)
    for case in json.loads(golden.read_text("utf-8")):
        cls = CLASSES.get(case["message"])
        raw = bytes.fromhex(case["bytes"])
        if cls is None or not raw:
            continue
        for _ in range(FLIPS):
            bad = bytearray(raw)
            for _ in range(chance.randint(1, 3)):
                bad[chance.randrange(len(bad))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
            only_peer_errors(partial(decode, cls, version=case["version"]), bytes(bad))
            only_peer_errors(partial(decode, cls, version=case["version"]), chance.randbytes(len(raw)))


@pytest.mark.parametrize(("cls", "version"), MESSAGES)
def test_a_lie_about_a_size_allocates_nothing(cls: type[Message], version: int) -> None:
    """A small frame that announces two thousand million elements costs next to no memory."""
    huge = (b"\x7f\xff\xff\xff" * 16, b"\xff\xff\xff\xff\x07" * 16, b"\xff" * 64)
    for raw in huge:  # compile the codec outside of the measurement
        only_peer_errors(lambda raw: decode(cls, raw, version), raw)
    tracemalloc.start()
    try:
        for at in range(24):
            for lie in huge:
                only_peer_errors(lambda raw: decode(cls, raw, version), bytes(at) + lie)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("cls", "version"), MESSAGES)
def test_a_cut_message_is_refused(cls: type[Message], version: int) -> None:
    """No message survives the loss of its tail, nor bytes behind its end."""
    raw = encode(cls(), version)
    for size in range(len(raw)):
        with pytest.raises(PeerError):
            decode(cls, raw[:size], version)
    with pytest.raises(PeerError, match="too many"):
        decode(cls, raw + b"\x00", version)


@given(raw=st.binary(max_size=80))
def test_garbage_in_a_header_blames_the_peer(raw: bytes) -> None:
    """A header raises nothing but PeerError."""
    only_peer_errors(decode_request_header, raw)

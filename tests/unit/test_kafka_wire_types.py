"""The primitive types of the wire."""

from __future__ import annotations

import pytest

from penstock.errors import PeerError
from penstock.kafka.wire.types import Reader, Writer


@pytest.mark.parametrize(
    ("value", "raw"), [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")]
)
def test_an_unsigned_varint_has_seven_bits_a_byte(value: int, raw: str) -> None:
    """Lowest bits first, as in protocol buffers."""
    writer = Writer()
    writer.uvarint(value)
    assert writer.hex() == raw
    assert Reader(writer).uvarint() == value


@pytest.mark.parametrize("value", [0, 1, -1, 63, -64, 64, 2**31 - 1, -(2**31)])
def test_a_varint_comes_back_with_its_sign(value: int) -> None:
    """Zigzag keeps both ends of the range."""
    writer = Writer()
    writer.varint(value)
    assert Reader(writer).varint() == value


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**40])
def test_a_varlong_comes_back_with_its_sign(value: int) -> None:
    """The 64-bit kind shares its writer with the 32-bit kind."""
    writer = Writer()
    writer.varint(value)
    assert Reader(writer).varlong() == value
    with pytest.raises(PeerError):
        Reader(writer).varint()


@pytest.mark.parametrize("raw", ["", "80", "ffffffff1f", "ffffffffff01", "808080808000"])
def test_a_varint_that_does_not_end_or_fit_is_refused(raw: str) -> None:
    """No varint is longer than its type needs."""
    with pytest.raises(PeerError):
        Reader(bytes.fromhex(raw)).uvarint()


def test_a_null_where_none_may_be_is_refused() -> None:
    """A non-nullable string or byte string has no null form."""
    for read, raw in (
        (Reader.string, b"\xff\xff"),
        (Reader.compact_string, b"\x00"),
        (Reader.data, b"\xff\xff\xff\xff"),
        (Reader.compact_data, b"\x00"),
    ):
        with pytest.raises(PeerError):
            read(Reader(raw))


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"\x80\x00"])
def test_a_negative_size_other_than_null_is_refused(raw: bytes) -> None:
    """Only -1 means null."""
    with pytest.raises(PeerError):
        Reader(raw).nullable_string()


def test_text_that_is_not_utf8_is_refused() -> None:
    """A string on the wire is UTF-8."""
    with pytest.raises(PeerError, match="UTF-8"):
        Reader(b"\x00\x02\xc3\x28").string()


def test_data_is_not_copied() -> None:
    """Record batches stay where the frame put them."""
    frame = bytearray(b"\x00\x00\x00\x02ab")
    view = Reader(frame).data()
    frame[4:5] = b"x"
    assert bytes(view) == b"xb"


def test_tags_must_ascend() -> None:
    """KIP-482: a tag comes once, behind the smaller ones."""
    assert Reader(b"\x02\x00\x01a\x05\x00").tags({0, 5}) == {0: b"a", 5: b""}
    for raw in (b"\x02\x05\x00\x00\x00", b"\x02\x01\x00\x01\x00"):
        with pytest.raises(PeerError, match="behind"):
            Reader(raw).tags()


def test_an_array_cannot_be_longer_than_its_frame() -> None:
    """The count is refused before anything is made of it."""
    assert Reader(b"\x00\x00\x00\x02" + bytes(8)).array_count(4) == 2
    with pytest.raises(PeerError, match="3 elements"):
        Reader(b"\x00\x00\x00\x03" + bytes(8)).array_count(4)

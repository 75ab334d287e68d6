"""Records come back as they went, and nonsense inside of a right checksum raises nothing but PeerError."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from stage.batches import batch, raw_batch, record, squeeze, xerial

from penstock.errors import PeerError
from penstock.kafka.records.batch import HEADER_SIZE, crc_matches, decode_header, refusal
from penstock.kafka.records.compression import decompress
from penstock.kafka.records.record import Record, decode_records

nullable = st.none() | st.binary(max_size=200)
pairs = st.lists(st.tuples(nullable, nullable), min_size=1, max_size=8)
stamps = st.integers(0, 2**45)


@settings(max_examples=60, deadline=None)
@given(pairs=pairs, codec=st.integers(0, 4), chance=st.data(), base=st.integers(0, 2**40))
def test_records_come_back_as_they_went(
    pairs: list[tuple[bytes | None, bytes | None]], codec: int, chance: st.DataObject, base: int
) -> None:
    """With every codec, any keys, values and times."""
    times = chance.draw(st.lists(stamps, min_size=len(pairs), max_size=len(pairs)))
    data = batch(pairs, stamps=times, codec=codec, base_offset=base)
    want = [Record(base + n, times[n], key, value) for n, (key, value) in enumerate(pairs)]
    assert list(decode_records(data)) == want


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=3000), block=st.integers(1, 4000))
def test_snappy_blocks_come_back(data: bytes, block: int) -> None:
    assert decompress(2, xerial(data, block), max(len(data), 1)) == data


@settings(max_examples=150, deadline=None)
@given(junk=st.binary(max_size=300), codec=st.integers(0, 7), count=st.integers(1, 2**31 - 1))
def test_noise_blames_the_peer(junk: bytes, codec: int, count: int) -> None:
    """Noise as records, plain and packed by a real compressor."""
    for records in (junk, squeeze(codec, junk)):
        try:
            for found in decode_records(raw_batch(records, count, codec=codec)):
                assert 0 <= found.offset < count
        except PeerError:
            continue


@settings(max_examples=150, deadline=None)
@given(codec=st.integers(0, 4), at=st.integers(0, 10_000), put=st.binary(min_size=1, max_size=4))
def test_spoiled_records_blame_the_peer(codec: int, at: int, put: bytes) -> None:
    """Real records with a few bytes changed."""
    packed = bytearray(squeeze(codec, b"".join(record(n, n, b"key", b"value" * n) for n in range(9))))
    at %= len(packed)
    packed[at : at + len(put)] = put
    try:
        list(decode_records(raw_batch(bytes(packed), 9, codec=codec), 1 << 20))
    except PeerError:
        return


@settings(max_examples=150, deadline=None)
@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_flipped_bit_is_refused_or_not_under_the_checksum(at: int, bit: int) -> None:
    """Only the place in the log and the epoch may differ; those the broker writes itself."""
    data = batch([b"a", b"b"])
    at %= len(data)
    data[at] ^= 1 << bit
    header = decode_header(data)
    is_refused = refusal(data, header) is not None
    assert is_refused != (at < 8 or 12 <= at < 16)


@settings(max_examples=100, deadline=None)
@given(head=st.binary(min_size=HEADER_SIZE, max_size=200))
def test_any_bytes_have_a_header_and_a_verdict(head: bytes) -> None:
    """No bytes of enough length raise anything."""
    header = decode_header(head)
    assert refusal(head, header) is not None
    if 0 <= header.size <= len(head):
        assert crc_matches(head, 0, header) in (True, False)

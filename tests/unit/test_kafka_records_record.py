"""Records inside a batch: read with every codec, capped, and nothing but PeerError for nonsense."""

from __future__ import annotations

import zlib

import cramjam
import pytest
from stage.batches import GZIP, LZ4, NONE, NOW_MS, SNAPPY, ZSTD, batch, raw_batch, record, squeeze, xerial

from penstock.errors import PeerError
from penstock.kafka.records.compression import decompress
from penstock.kafka.records.record import Record, decode_records, encode_values, encode_varint

CODECS = [NONE, GZIP, SNAPPY, LZ4, ZSTD]
PACKED = CODECS[1:]
MIB = 1024 * 1024


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_back_with_every_codec(codec: int) -> None:
    """Keys, tombstones, empty values and times, whichever way they were compressed."""
    pairs = [(b"k", b"v" * 5000), (None, None), (b"", b""), (b"gone", None)]
    stamps = [NOW_MS, NOW_MS - 7, NOW_MS + 3, NOW_MS]
    data = batch(pairs, stamps=stamps, codec=codec, base_offset=40)
    want = [Record(40 + n, stamps[n], key, value) for n, (key, value) in enumerate(pairs)]
    assert list(decode_records(data)) == want


@pytest.mark.parametrize("block", [1, 7, 300, 10_000])
def test_the_blocks_of_the_java_snappy_library_are_opened(block: int) -> None:
    """Kafka's Java clients write snappy in blocks behind a header of their own."""
    records = b"".join(record(n, 0, None, b"x" * n) for n in range(30))
    data = raw_batch(xerial(records, block), 30, codec=SNAPPY)
    assert [len(found.value or b"") for found in decode_records(data)] == list(range(30))


def test_zstd_without_a_size_in_its_frame_is_opened() -> None:
    """Streaming compressors do not know the size when they begin."""
    stream = cramjam.zstd.Compressor()
    records = record(0, 0, None, b"y" * 100_000)
    stream.compress(records)
    data = raw_batch(bytes(stream.finish()), 1, codec=ZSTD)
    assert [len(found.value or b"") for found in decode_records(data)] == [100_000]


@pytest.mark.parametrize("codec", PACKED)
def test_a_decompression_bomb_is_capped(codec: int) -> None:
    """A small batch that opens to a large one is refused, not opened."""
    bomb = squeeze(codec, bytes(32 * MIB))
    assert len(bomb) < 2 * MIB
    with pytest.raises(PeerError):
        decompress(codec, bomb, 4 * MIB)


@pytest.mark.parametrize("codec", PACKED)
def test_what_just_fits_is_opened(codec: int) -> None:
    """The cap is a limit of the output, not a guess."""
    data = bytes(range(256)) * 16_384
    assert decompress(codec, squeeze(codec, data), len(data)) == data
    with pytest.raises(PeerError):
        decompress(codec, squeeze(codec, data), len(data) - 1)


def test_a_bomb_in_snappy_blocks_is_capped_over_all_blocks() -> None:
    """Each block is small; together they are not."""
    with pytest.raises(PeerError, match="more than"):
        decompress(SNAPPY, xerial(bytes(8 * MIB), MIB), 4 * MIB)


@pytest.mark.parametrize("codec", [*PACKED, 5, 6, 7])
def test_nonsense_blames_the_peer(codec: int) -> None:
    """Bytes that no compressor wrote."""
    for junk in (b"", b"\0", b"junk" * 40, b"\xff" * 100, b"\x82SNAPPY\x00" + b"\xff" * 30):
        with pytest.raises(PeerError):
            list(decode_records(raw_batch(junk, 1, codec=codec)))


@pytest.mark.parametrize("codec", PACKED)
def test_a_cut_stream_blames_the_peer(codec: int) -> None:
    """Half of a compressed batch is no batch."""
    packed = squeeze(codec, b"".join(record(n, 0, None, bytes([n]) * 50) for n in range(20)))
    for size in range(0, len(packed), 5):
        with pytest.raises(PeerError):
            list(decode_records(raw_batch(packed[:size], 20, codec=codec)))


@pytest.mark.parametrize(
    "records",
    [
        b"",
        b"\x01",
        b"\x00",
        b"\xff" * 20,
        encode_varint(50) + b"short",
        encode_varint(6) + b"\0\0\0" + encode_varint(90) + b"\0\0",
        encode_varint(2**62),
        record(0, 0, b"k", b"v")[:-4],
    ],
)
def test_malformed_records_blame_the_peer(records: bytes) -> None:
    """A right checksum over wrong records."""
    with pytest.raises(PeerError):
        list(decode_records(raw_batch(records, 1)))


@pytest.mark.parametrize(("delta", "stamp_delta"), [(1, 0), (-1, 0), (2**40, 0), (0, 2**63 - 1)])
def test_a_record_outside_of_its_batch_blames_the_peer(delta: int, stamp_delta: int) -> None:
    """Offsets stay in the batch's range and times in 64 bits, or an answer made of them could not be written."""
    with pytest.raises(PeerError):
        list(decode_records(raw_batch(record(delta, stamp_delta, None, b"v"), 1)))


def test_fewer_records_than_claimed_blame_the_peer() -> None:
    """The count in the header is compared with what is there."""
    with pytest.raises(PeerError):
        list(decode_records(raw_batch(record(0, 0, None, b"v"), 2)))


def test_numbers_of_every_size_come_back() -> None:
    """Zigzag varints, from one byte to ten."""
    for value in (0, -1, 1, 63, -64, 64, 2**31 - 1, -(2**31), 2**62, -(2**62)):
        stamp = NOW_MS if abs(value) > 2**60 else NOW_MS + value
        data = raw_batch(record(0, stamp - NOW_MS, None, b"v"), 1)
        assert next(decode_records(data)).timestamp == stamp


def test_values_of_our_own_logs_come_back() -> None:
    """What the metadata log writes, it reads."""
    data = encode_values([b"one", b"", b"three" * 1000], NOW_MS)
    assert [found.value for found in decode_records(data)] == [b"one", b"", b"three" * 1000]


def test_gzip_in_several_members_is_opened() -> None:
    """gzip files may be glued together; Java's reader takes them as one."""
    first, second = record(0, 0, None, b"a"), record(1, 0, None, b"b")
    glued = squeeze(GZIP, first) + squeeze(GZIP, second)
    assert zlib.decompress(squeeze(GZIP, first), 31) == first
    assert [found.value for found in decode_records(raw_batch(glued, 2, codec=GZIP))] == [b"a", b"b"]

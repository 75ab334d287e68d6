"""The hand-written codecs of Produce and Fetch say what the tables say, at every version; nonsense blames the peer."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.errors import PeerError
from penstock.kafka.wire import fetch as hot_fetch
from penstock.kafka.wire import produce as hot_produce
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.header import encode_request_header, encode_response_header
from penstock.kafka.wire.message import decode, encode
from penstock.kafka.wire.messages import fetch as cold_fetch
from penstock.kafka.wire.messages import produce as cold_produce
from penstock.kafka.wire.produce_shape import Opening, learn_shape

PRODUCE_VERSIONS = range(3, 14)
FETCH_VERSIONS = range(4, 19)
PRODUCE_BY_ID = FETCH_BY_ID = 13

int8, int16 = st.integers(-(2**7), 2**7 - 1), st.integers(-(2**15), 2**15 - 1)
int32, int64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
names = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
ranges = st.none() | st.lists(st.tuples(int64, int64), max_size=3)
blobs = st.binary(max_size=300)


def keys(version: int, by_id: int) -> st.SearchStrategy[tuple[str, UUID]]:
    """A topic as this version names it."""
    if version >= by_id:
        return st.tuples(st.just(""), st.uuids())
    return st.tuples(names, st.just(UUID(int=0)))


def raw_key(name: str, topic_id: UUID, version: int, by_id: int) -> bytes:
    return topic_id.bytes if version >= by_id else name.encode()


def framed(key: ApiKey, version: int, correlation: int, body: bytes) -> bytes:
    whole = encode_response_header(key, version, correlation) + body
    return len(whole).to_bytes(4, "big") + whole


@st.composite
def produce_requests(draw: st.DrawFn, version: int) -> cold_produce.ProduceRequest:
    topics = []
    for name, topic_id in draw(st.lists(keys(version, PRODUCE_BY_ID), max_size=3)):
        parts = draw(st.lists(st.builds(cold_produce.PartitionProduceData, int32, st.none() | blobs), max_size=3))
        topics.append(cold_produce.TopicProduceData(name, topic_id, parts))
    return cold_produce.ProduceRequest(draw(st.none() | names), draw(int16), draw(int32), topics)


@st.composite
def fetch_requests(draw: st.DrawFn, version: int) -> cold_fetch.FetchRequest:
    def since(first: int, values: st.SearchStrategy[int], default: int) -> int:
        return draw(values) if version >= first else default

    topics = []
    for name, topic_id in draw(st.lists(keys(version, FETCH_BY_ID), max_size=3)):
        parts = [
            cold_fetch.FetchPartition(
                draw(int32), since(9, int32, -1), draw(int64), since(12, int32, -1), since(5, int64, -1), draw(int32)
            )
            for _ in range(draw(st.integers(0, 3)))
        ]
        topics.append(cold_fetch.FetchTopic(name, topic_id, parts))
    forgotten = []
    if version >= 7:
        for name, topic_id in draw(st.lists(keys(version, FETCH_BY_ID), max_size=2)):
            forgotten.append(cold_fetch.ForgottenTopic(name, topic_id, draw(st.lists(int32, max_size=3))))
    return cold_fetch.FetchRequest(
        cluster_id=draw(st.none() | names) if version >= 12 else None,
        replica_id=draw(int32) if version <= 14 else -1,
        max_wait_ms=draw(int32),
        min_bytes=draw(int32),
        max_bytes=draw(int32),
        isolation_level=draw(int8),
        session_id=since(7, int32, 0),
        session_epoch=since(7, int32, -1),
        topics=topics,
        forgotten_topics_data=forgotten,
        rack_id=draw(names) if version >= 11 else "",
    )


def wanted_produce(request: cold_produce.ProduceRequest, version: int) -> hot_produce.ProduceCall:
    topics = [
        (
            raw_key(topic.name, topic.topic_id, version, PRODUCE_BY_ID),
            [(part.index, None if part.records is None else memoryview(part.records)) for part in topic.partition_data],
        )
        for topic in request.topic_data
    ]
    name = request.transactional_id
    return hot_produce.ProduceCall(None if name is None else name.encode(), request.acks, topics)


def wanted_fetch(request: cold_fetch.FetchRequest, version: int) -> hot_fetch.FetchCall:
    topics = [
        (
            raw_key(topic.topic, topic.topic_id, version, FETCH_BY_ID),
            [
                hot_fetch.FetchPartition(p.partition, p.current_leader_epoch, p.fetch_offset, p.partition_max_bytes)
                for p in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    return hot_fetch.FetchCall(
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level == 1,
        request.session_id,
        request.session_epoch,
        topics,
    )


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@settings(max_examples=15, deadline=None)
@given(chance=st.data())
def test_a_produce_request_is_read_as_by_the_table(version: int, chance: st.DataObject) -> None:
    """Also when it does not begin at the first byte of the frame."""
    request = chance.draw(produce_requests(version))
    before = chance.draw(st.binary(max_size=20))
    frame = memoryview(bytearray(before + encode(request, version)))
    assert hot_produce.decode_produce(frame, len(before), version) == wanted_produce(request, version)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@settings(max_examples=15, deadline=None)
@given(chance=st.data())
def test_a_fetch_request_is_read_as_by_the_table(version: int, chance: st.DataObject) -> None:
    """Forgotten topics, racks and tagged fields are stepped over."""
    request = chance.draw(fetch_requests(version))
    frame = memoryview(encode(request, version))
    assert hot_fetch.decode_fetch(frame, 0, version) == wanted_fetch(request, version)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@settings(max_examples=15, deadline=None)
@given(chance=st.data())
def test_a_produce_response_is_written_as_by_the_table(version: int, chance: st.DataObject) -> None:
    """Byte for byte, its length and header included."""
    correlation = chance.draw(int32)
    hot, cold = [], []
    for name, topic_id in chance.draw(st.lists(keys(version, PRODUCE_BY_ID), max_size=3)):
        acks, parts = [], []
        for _ in range(chance.draw(st.integers(0, 3))):
            ack = hot_produce.PartitionAck(chance.draw(int32))
            ack.error_code, ack.base_offset = chance.draw(int16), chance.draw(int64)
            ack.append_time_ms, ack.start_offset = chance.draw(int64), chance.draw(int64)
            ack.error_message = chance.draw(st.none() | names)
            acks.append(ack)
            parts.append(
                cold_produce.PartitionProduceResponse(
                    ack.index,
                    ack.error_code,
                    ack.base_offset,
                    ack.append_time_ms,
                    ack.start_offset,
                    [],
                    ack.error_message,
                )
            )
        hot.append((raw_key(name, topic_id, version, PRODUCE_BY_ID), acks))
        cold.append(cold_produce.TopicProduceResponse(name, topic_id, parts))
    want = framed(ApiKey.PRODUCE, version, correlation, encode(cold_produce.ProduceResponse(cold), version))
    assert hot_produce.encode_produce_response(version, correlation, hot) == want


def _cold_ranges(part: hot_fetch.FetchedPartition) -> list[cold_fetch.AbortedTransaction] | None:
    return None if part.aborted is None else [cold_fetch.AbortedTransaction(*one) for one in part.aborted]


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@settings(max_examples=15, deadline=None)
@given(chance=st.data())
def test_a_fetch_response_is_written_as_by_the_table(version: int, chance: st.DataObject) -> None:
    """Byte for byte, although records are never copied."""
    correlation, error = chance.draw(int32), chance.draw(int16) if version >= 7 else 0
    hot, cold = [], []
    for name, topic_id in chance.draw(st.lists(keys(version, FETCH_BY_ID), max_size=3)):
        found = chance.draw(
            st.lists(
                st.builds(hot_fetch.FetchedPartition, int32, int16, int64, int64, int64, ranges, blobs), max_size=3
            )
        )
        hot.append((raw_key(name, topic_id, version, FETCH_BY_ID), found))
        parts = [
            cold_fetch.PartitionData(
                part.partition, part.error_code, part.high_watermark, part.stable_offset,
                part.start_offset if version >= 5 else -1, aborted_transactions=_cold_ranges(part),
                records=part.records,
            )
            for part in found
        ]  # fmt: skip
        cold.append(cold_fetch.FetchableTopicResponse(name, topic_id, parts))
    want = encode(cold_fetch.FetchResponse(error_code=error, responses=cold), version)
    chunks = hot_fetch.encode_fetch_response(version, correlation, error, hot)
    assert b"".join(chunks) == framed(ApiKey.FETCH, version, correlation, want)


def spoiled(raw: bytes) -> st.SearchStrategy[bytes]:
    """The bytes of a request with a few of them changed, cut out or doubled."""

    def spoil(edits: list[tuple[int, int, bytes]]) -> bytes:
        bad = raw
        for at, length, put in edits:
            at %= len(bad) + 1
            bad = bad[:at] + put + bad[at + length :]
        return bad

    edit = st.tuples(st.integers(0, 2**16), st.integers(0, 8), st.binary(max_size=8))
    return st.lists(edit, min_size=1, max_size=4).map(spoil)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@settings(max_examples=20, deadline=None)
@given(chance=st.data())
def test_a_spoiled_produce_request_blames_the_peer(version: int, chance: st.DataObject) -> None:
    """Nothing but PeerError comes out, and what the table reads is read the same."""
    raw = chance.draw(spoiled(encode(chance.draw(produce_requests(version)), version)))
    try:
        call = hot_produce.decode_produce(memoryview(bytearray(raw)), 0, version)
    except PeerError:
        with pytest.raises(PeerError):
            decode(cold_produce.ProduceRequest, raw, version)
        return
    try:
        request = decode(cold_produce.ProduceRequest, raw, version)
    except PeerError:
        return  # the table looks at names and tags, too
    assert call == wanted_produce(request, version)


@pytest.mark.parametrize("version", FETCH_VERSIONS)
@settings(max_examples=20, deadline=None)
@given(chance=st.data())
def test_a_spoiled_fetch_request_blames_the_peer(version: int, chance: st.DataObject) -> None:
    """Nothing but PeerError comes out, and what the table reads is read the same."""
    raw = chance.draw(spoiled(encode(chance.draw(fetch_requests(version)), version)))
    try:
        call = hot_fetch.decode_fetch(memoryview(bytearray(raw)), 0, version)
    except PeerError:
        with pytest.raises(PeerError):
            decode(cold_fetch.FetchRequest, raw, version)
        return
    try:
        request = decode(cold_fetch.FetchRequest, raw, version)
    except PeerError:
        return
    assert call == wanted_fetch(request, version)


@pytest.mark.parametrize("version", PRODUCE_VERSIONS)
@settings(max_examples=20, deadline=None)
@given(chance=st.data())
def test_a_learned_shape_reads_and_answers_as_the_codecs_do(version: int, chance: st.DataObject) -> None:
    """Or it says that the request is another; never anything in between."""
    name, topic_id = chance.draw(keys(version, PRODUCE_BY_ID))
    key = raw_key(name, topic_id, version, PRODUCE_BY_ID)
    acks, index = chance.draw(st.sampled_from([-1, 0, 1, 2])), chance.draw(int32)

    def frame(correlation: int, data: bytes) -> memoryview:
        topic = cold_produce.TopicProduceData(name, topic_id, [cold_produce.PartitionProduceData(index, data)])
        body = encode(cold_produce.ProduceRequest(None, acks, 1000, [topic]), version)
        return memoryview(bytearray(encode_request_header(ApiKey.PRODUCE, version, correlation, "me") + body))

    first = frame(1, chance.draw(blobs))
    start = len(encode_request_header(ApiKey.PRODUCE, version, 1, "me"))
    shape = learn_shape(first, version, hot_produce.decode_produce(first, start, version))
    if shape is None:
        assert acks not in (-1, 1) or version < 5 or len(first) < 200
        return
    assert acks in (-1, 1)
    correlation, data = chance.draw(int32), chance.draw(blobs)
    opening = Opening(version, len(shape.middle))
    split = opening.split(frame(correlation, data))
    assert split is None or split == (correlation, shape.middle, memoryview(data))
    bad = chance.draw(spoiled(bytes(first)))
    if len(bad) >= 8 and (found := opening.split(memoryview(bytearray(bad)))) is not None and found[1] == shape.middle:
        call = hot_produce.decode_produce(memoryview(bytearray(bad)), start, version)
        assert call == hot_produce.ProduceCall(None, acks, [(key, [(index, found[2])])])
    ack = hot_produce.PartitionAck(index)
    ack.base_offset, ack.start_offset = chance.draw(int64), chance.draw(int64)
    want = hot_produce.encode_produce_response(version, correlation, [(key, [ack])])
    assert shape.encode_ack(correlation, ack.base_offset, ack.start_offset) == want

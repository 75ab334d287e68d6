"""Fields and versions: what a version does not know is left out or refused."""

from __future__ import annotations

import pytest

from penstock.errors import PeerError
from penstock.kafka.wire.apis import APIS, ApiKey
from penstock.kafka.wire.header import decode_request_header, encode_request_header
from penstock.kafka.wire.message import decode, encode
from penstock.kafka.wire.messages.api_versions import ApiVersionsRequest
from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.kafka.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.kafka.wire.types import Writer


def test_an_ignorable_field_is_left_out_of_older_versions() -> None:
    """A cluster id is not worth an error; version 1 does without."""
    message = MetadataResponse(cluster_id="river", controller_id=3)
    assert decode(MetadataResponse, encode(message, 1), 1) == MetadataResponse(controller_id=3)


def test_a_field_that_matters_is_refused_by_older_versions() -> None:
    """Leaving it out would change what was asked."""
    with pytest.raises(ValueError, match="version 3 of MetadataRequest has no allow_auto_topic_creation"):
        encode(MetadataRequest(allow_auto_topic_creation=False), 3)


def test_null_is_refused_before_it_was_invented() -> None:
    """Version 0 of Metadata had no null; it asked for all topics with an empty list."""
    everything = MetadataRequest(topics=None)
    assert decode(MetadataRequest, encode(everything, 1), 1) == everything
    with pytest.raises(ValueError):
        encode(everything, 0)
    with pytest.raises(PeerError, match="null"):
        decode(MetadataRequest, b"\xff\xff\xff\xff", 0)


def test_a_value_that_does_not_fit_its_type_is_refused() -> None:
    """Never a wrapped number on the wire."""
    with pytest.raises(ValueError):
        encode(InitProducerIdRequest(transaction_timeout_ms=2**31), 0)
    with pytest.raises(ValueError):
        encode(InitProducerIdRequest(transactional_id="x" * 40_000), 0)


def test_a_version_outside_of_the_table_is_refused() -> None:
    """Asking for it is our mistake, so it is not a PeerError."""
    with pytest.raises(ValueError, match="no version 0, only 1 to 6"):
        encode(DeleteTopicsRequest(), 0)


def test_an_unknown_tag_is_skipped() -> None:
    """A newer client may say more than we know, at any depth."""
    writer = Writer()
    writer.compact_string("client")
    writer.compact_string("1.0")
    writer.tags([(7, b"news"), (300, b"")])
    assert decode(ApiVersionsRequest, writer, 3) == ApiVersionsRequest("client", "1.0")


def test_an_array_longer_than_one_length_byte_comes_back() -> None:
    """Compact lengths above 127 take two bytes."""
    partitions = [MetadataResponsePartition(partition_index=index) for index in range(1000)]
    message = MetadataResponse(topics=[MetadataResponseTopic(name="wide", partitions=partitions)])
    assert decode(MetadataResponse, encode(message, 12), 12) == message


def test_a_body_is_decoded_behind_its_header() -> None:
    """The size of the header is the position of the body."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name="orders")])
    frame = encode_request_header(ApiKey.METADATA, 12, 41, "test") + encode(request, 12)
    header = decode_request_header(frame)
    assert decode(MetadataRequest, frame, header.api_version, header.size) == request


def test_the_header_of_a_future_api_versions_request_is_read() -> None:
    """A client tries its newest version first and must get an answer, so its header must be readable."""
    frame = encode_request_header(ApiKey.API_VERSIONS, 99, 1, "future") + b"whatever"
    assert decode_request_header(frame).correlation_id == 1


def test_a_request_for_an_unknown_api_is_the_peers_fault() -> None:
    """Nobody knows where the header of an unknown API ends."""
    with pytest.raises(PeerError, match="no API 999"):
        decode_request_header(b"\x03\xe7\x00\x00\x00\x00\x00\x01\xff\xff")


def test_the_versions_served_are_those_of_kafka_4_3() -> None:
    """The table that ApiVersions answers with."""
    assert {api.name: (api.min_version, api.max_version) for api in APIS.values()} == {
        "Produce": (3, 13),
        "Fetch": (4, 18),
        "ListOffsets": (1, 11),
        "Metadata": (0, 13),
        "OffsetCommit": (2, 10),
        "OffsetFetch": (1, 10),
        "FindCoordinator": (0, 6),
        "JoinGroup": (0, 9),
        "Heartbeat": (0, 4),
        "LeaveGroup": (0, 5),
        "SyncGroup": (0, 5),
        "DescribeGroups": (0, 6),
        "ListGroups": (0, 5),
        "ApiVersions": (0, 4),
        "CreateTopics": (2, 7),
        "DeleteTopics": (1, 6),
        "DeleteRecords": (0, 2),
        "InitProducerId": (0, 5),
        "OffsetForLeaderEpoch": (2, 4),
        "AddPartitionsToTxn": (0, 5),
        "AddOffsetsToTxn": (0, 4),
        "EndTxn": (0, 5),
        "WriteTxnMarkers": (1, 2),
        "TxnOffsetCommit": (0, 5),
        "DescribeAcls": (1, 3),
        "DescribeConfigs": (1, 4),
        "ConsumerGroupHeartbeat": (0, 1),
        "ConsumerGroupDescribe": (0, 1),
        "DescribeLogDirs": (1, 5),
        "CreatePartitions": (0, 3),
        "DeleteGroups": (0, 2),
        "IncrementalAlterConfigs": (0, 1),
        "OffsetDelete": (0, 0),
        "DescribeCluster": (0, 2),
        "DescribeProducers": (0, 0),
        "DescribeTransactions": (0, 0),
        "AlterReplicaLogDirs": (1, 2),
        "ElectLeaders": (0, 2),
        "AlterPartitionReassignments": (0, 1),
        "ListPartitionReassignments": (0, 0),
        "DescribeQuorum": (0, 2),
        "ListConfigResources": (0, 1),
        "DescribeTopicPartitions": (0, 0),
        "ListTransactions": (0, 1),  # Kafka's version 2 brings a regular expression
    }

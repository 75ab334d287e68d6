"""What docs/differences.md says about the protocol, asserted on both sides."""

from __future__ import annotations

import re
import socket
import ssl
from pathlib import Path

import pytest
from asking.connection import Connection
from asking.nodes import Both
from asking.requests import create_topic

from penstock.errors import ErrorCode
from penstock.kafka.wire.apis import APIS
from penstock.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.kafka.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.kafka.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsTopic,
)
from penstock.kafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.kafka.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse

PAGE = Path(__file__).parents[2] / "docs" / "differences.md"
LIST_TRANSACTIONS = 66
TELEMETRY = {71, 72}
TIMEOUT_S = 30.0
ME = ApiVersionsRequest(client_software_name="compat", client_software_version="1.0")


def offered(connection: Connection) -> dict[int, tuple[int, int]]:
    answer = connection.ask(ME, 4, ApiVersionsResponse)
    return {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}


def test_what_we_offer_is_offered_by_kafka_in_the_same_versions(both: Both) -> None:
    """Fewer APIs, but none in a version of its own, so that a client chooses the same on both."""
    ours, theirs = offered(both.penstock), offered(both.kafka)
    assert sorted(ours) == sorted(APIS)
    assert ours | {LIST_TRANSACTIONS: theirs[LIST_TRANSACTIONS]} == {key: theirs[key] for key in ours}
    assert ours[LIST_TRANSACTIONS] == (0, 1)  # version 2 asks by a pattern of ids


def test_the_page_lists_every_api_that_kafka_offers_and_we_do_not(both: Both) -> None:
    section = (
        PAGE.read_text("utf-8").split("## APIs that are not offered\n")[1].split("\n\nKafka offers client telemetry")[0]
    )
    listed = {int(key): name for name, key in re.findall(r"`(\w+)` (\d+)", section)}
    ours, theirs = offered(both.penstock), offered(both.kafka)
    assert sorted(listed) == sorted(theirs.keys() - ours.keys())
    assert not TELEMETRY & (ours.keys() | theirs.keys())


@pytest.mark.parametrize(
    ("setting", "value"), [("cleanup.policy", "compact"), ("compression.type", "zstd"), ("min.insync.replicas", "2")]
)
def test_a_setting_that_is_not_there_yet_is_refused(both: Both, topic: str, setting: str, value: str) -> None:
    codes = []
    for connection in both:
        configs = [CreatableTopicConfig(setting, value)]
        request = CreateTopicsRequest([CreatableTopic(topic, 1, 1, [], configs)], 30_000)
        codes.append(connection.ask(request, 7, CreateTopicsResponse).topics[0].error_code)
    assert codes == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]


def test_a_tls_client_is_disconnected(both: Both) -> None:
    """Apache Kafka's plain listener does the same."""
    for connection in both:
        host, _, port = connection.address.rpartition(":")
        with socket.create_connection((host, int(port)), TIMEOUT_S) as plain:
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with pytest.raises(OSError):
                context.wrap_socket(plain)


def test_of_kafkas_features_we_name_that_of_transactions(both: Both) -> None:
    """The others are about Kafka's own metadata."""
    ours = both.penstock.ask(ME, 4, ApiVersionsResponse).supported_features
    theirs = both.kafka.ask(ME, 4, ApiVersionsResponse).supported_features
    assert [feature.name for feature in ours] == ["transaction.version"]
    assert ours[0] in theirs


def test_a_too_new_api_versions_tells_all_we_serve(both: Both) -> None:
    """Kafka lists ApiVersions alone, we everything: a client may go on without asking again."""

    def listed(connection: Connection) -> int:
        connection.send_frame(b"\0\x12\0\x63\0\0\0\x07\xff\xff\0\0\0\0")
        frame = connection.receive_frame()
        return int.from_bytes(frame[6:10], "big")

    assert listed(both.penstock) == len(APIS)
    assert listed(both.kafka) == 1


def test_an_unknown_kind_of_change_is_named(both: Both, topic: str) -> None:
    """Kafka fails inside (UNKNOWN_SERVER_ERROR); we say that the setting cannot be changed so."""
    change = AlterableConfig(name="retention.ms", config_operation=9, value="1")
    resource = AlterConfigsResource(resource_type=2, resource_name=topic, configs=[change])
    codes = []
    for connection in both:
        create_topic(connection, topic)
        request = IncrementalAlterConfigsRequest(resources=[resource])
        answer = connection.ask(request, 1, IncrementalAlterConfigsResponse)
        codes.append(answer.responses[0].error_code)
    assert codes == [ErrorCode.INVALID_CONFIG, ErrorCode.UNKNOWN_SERVER_ERROR]


def test_no_name_spoils_only_its_own_answer(both: Both, topic: str) -> None:
    """Kafka fails inside for all topics of a DescribeTopicPartitions; we name the one that is wrong."""
    codes = []
    for connection in both:
        create_topic(connection, topic)
        request = DescribeTopicPartitionsRequest([DescribeTopicPartitionsTopic(name) for name in (topic, "")])
        answer = connection.ask(request, 0, DescribeTopicPartitionsResponse)
        codes.append({told.name: told.error_code for told in answer.topics})
    ours, theirs = codes
    assert ours == {topic: ErrorCode.NONE, "": ErrorCode.INVALID_TOPIC_EXCEPTION}
    assert theirs == dict.fromkeys((topic, ""), ErrorCode.UNKNOWN_SERVER_ERROR)


def test_only_what_has_settings_is_listed(both: Both) -> None:
    """Kafka's loggers can be set, and are listed; ours have one level, set at the start."""
    request = ListConfigResourcesRequest([8])
    ours, theirs = (each.ask(request, 1, ListConfigResourcesResponse).config_resources for each in both)
    assert (len(ours), len(theirs)) == (0, 1)

"""Every API at every version: our answers are Kafka's answers, field by field."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asking import (
    cluster_scenarios,
    consumer_scenarios,
    data_scenarios,
    group_scenarios,
    topic_scenarios,
    transaction_scenarios,
)
from asking.comparison import comparable
from asking.connection import Connection
from asking.nodes import Both

from penstock.kafka.wire.apis import APIS, ApiKey
from penstock.kafka.wire.message import Message

Scenario = Callable[[Connection, int, str], list[Message]]

SCENARIOS: dict[ApiKey, Scenario] = {
    ApiKey.PRODUCE: data_scenarios.ask_produce,
    ApiKey.FETCH: data_scenarios.ask_fetch,
    ApiKey.LIST_OFFSETS: data_scenarios.ask_list_offsets,
    ApiKey.METADATA: topic_scenarios.ask_metadata,
    ApiKey.API_VERSIONS: topic_scenarios.ask_api_versions,
    ApiKey.CREATE_TOPICS: topic_scenarios.ask_create_topics,
    ApiKey.DELETE_TOPICS: topic_scenarios.ask_delete_topics,
    ApiKey.DELETE_RECORDS: data_scenarios.ask_delete_records,
    ApiKey.INIT_PRODUCER_ID: data_scenarios.ask_init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: data_scenarios.ask_leader_epoch,
    ApiKey.DESCRIBE_ACLS: topic_scenarios.ask_describe_acls,
    ApiKey.DESCRIBE_CONFIGS: topic_scenarios.ask_describe_configs,
    ApiKey.CREATE_PARTITIONS: topic_scenarios.ask_create_partitions,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: topic_scenarios.ask_alter_configs,
    ApiKey.DESCRIBE_CLUSTER: topic_scenarios.ask_describe_cluster,
    ApiKey.FIND_COORDINATOR: group_scenarios.ask_find_coordinator,
    ApiKey.JOIN_GROUP: group_scenarios.ask_join_group,
    ApiKey.SYNC_GROUP: group_scenarios.ask_sync_group,
    ApiKey.HEARTBEAT: group_scenarios.ask_heartbeat,
    ApiKey.LEAVE_GROUP: group_scenarios.ask_leave_group,
    ApiKey.OFFSET_COMMIT: group_scenarios.ask_offset_commit,
    ApiKey.OFFSET_FETCH: group_scenarios.ask_offset_fetch,
    ApiKey.OFFSET_DELETE: group_scenarios.ask_offset_delete,
    ApiKey.LIST_GROUPS: group_scenarios.ask_list_groups,
    ApiKey.DESCRIBE_GROUPS: group_scenarios.ask_describe_groups,
    ApiKey.DELETE_GROUPS: group_scenarios.ask_delete_groups,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: consumer_scenarios.ask_consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: consumer_scenarios.ask_consumer_group_describe,
    ApiKey.DESCRIBE_LOG_DIRS: consumer_scenarios.ask_describe_log_dirs,
    ApiKey.ADD_PARTITIONS_TO_TXN: transaction_scenarios.ask_add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: transaction_scenarios.ask_add_offsets,
    ApiKey.END_TXN: transaction_scenarios.ask_end,
    ApiKey.TXN_OFFSET_COMMIT: transaction_scenarios.ask_txn_offset_commit,
    ApiKey.DESCRIBE_TRANSACTIONS: transaction_scenarios.ask_describe_transactions,
    ApiKey.LIST_TRANSACTIONS: transaction_scenarios.ask_list_transactions,
    ApiKey.DESCRIBE_PRODUCERS: transaction_scenarios.ask_describe_producers,
    ApiKey.WRITE_TXN_MARKERS: transaction_scenarios.ask_write_markers,
    ApiKey.ELECT_LEADERS: cluster_scenarios.ask_elect_leaders,
    ApiKey.ALTER_REPLICA_LOG_DIRS: cluster_scenarios.ask_alter_log_dirs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: cluster_scenarios.ask_alter_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: cluster_scenarios.ask_list_reassignments,
    ApiKey.DESCRIBE_QUORUM: cluster_scenarios.ask_describe_quorum,
    ApiKey.LIST_CONFIG_RESOURCES: cluster_scenarios.ask_list_config_resources,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: cluster_scenarios.ask_describe_topic_partitions,
}

# Fields that may differ: ids and ports are each broker's own, texts of errors are ours.
MAY_DIFFER: dict[ApiKey, set[str]] = {
    ApiKey.PRODUCE: {"responses.topic_id", "responses.partition_responses.error_message"},
    # Null and empty both say that no transaction was aborted; Kafka uses either.
    ApiKey.FETCH: {"responses.topic_id", "responses.partitions.aborted_transactions"},
    ApiKey.METADATA: {"brokers.port", "cluster_id", "topics.topic_id"},
    # What is offered and with which features is compared in its own test below.
    ApiKey.API_VERSIONS: {
        "api_keys",
        "supported_features",
        "finalized_features",
        "finalized_features_epoch",
        "zk_migration_ready",
    },
    # Kafka lists settings that we do not have; DescribeConfigs compares those that both have.
    ApiKey.CREATE_TOPICS: {"topics.topic_id", "topics.error_message", "topics.configs"},
    ApiKey.DELETE_TOPICS: {"responses.topic_id", "responses.error_message"},
    ApiKey.INIT_PRODUCER_ID: {"producer_id"},
    ApiKey.DESCRIBE_CONFIGS: {
        "results.error_message",
        "results.configs.documentation",
        "results.configs.synonyms",
    },
    ApiKey.DESCRIBE_ACLS: {"error_message"},
    ApiKey.CREATE_PARTITIONS: {"results.error_message"},
    ApiKey.INCREMENTAL_ALTER_CONFIGS: {"responses.error_message"},
    ApiKey.FIND_COORDINATOR: {"port", "error_message", "coordinators.port", "coordinators.error_message"},
    # Ids of members are random.
    ApiKey.JOIN_GROUP: {"member_id", "leader", "members.member_id"},
    ApiKey.DESCRIBE_GROUPS: {"groups.members.member_id", "groups.error_message"},
    ApiKey.OFFSET_COMMIT: {"topics.topic_id"},
    # A member of version 0 is given a random id. Epochs only grow; where they begin is no promise.
    ApiKey.CONSUMER_GROUP_HEARTBEAT: {
        "member_id",
        "member_epoch",
        "error_message",
        "assignment.topic_partitions.topic_id",
    },
    ApiKey.CONSUMER_GROUP_DESCRIBE: {
        "groups.error_message",
        "groups.group_epoch",
        "groups.assignment_epoch",
        "groups.members.member_epoch",
        "groups.members.assignment.topic_partitions.topic_id",
        "groups.members.target_assignment.topic_partitions.topic_id",
    },
    ApiKey.DESCRIBE_LOG_DIRS: {"results.log_dir", "results.total_bytes", "results.usable_bytes"},
    ApiKey.OFFSET_FETCH: {"groups.topics.topic_id"},
    ApiKey.END_TXN: {"producer_id"},
    ApiKey.DESCRIBE_TRANSACTIONS: {"transaction_states.producer_id", "transaction_states.transaction_start_time_ms"},
    ApiKey.LIST_TRANSACTIONS: {"transaction_states.producer_id"},
    ApiKey.DESCRIBE_PRODUCERS: {
        "topics.partitions.error_message",
        "topics.partitions.active_producers.producer_id",
        "topics.partitions.active_producers.last_timestamp",
    },
    ApiKey.WRITE_TXN_MARKERS: {"markers.producer_id"},
    ApiKey.DESCRIBE_CLUSTER: {"brokers.port", "cluster_id", "error_message"},
    ApiKey.ELECT_LEADERS: {"replica_election_results.partition_result.error_message"},
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: {"responses.partitions.error_message"},
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: {"topics.topic_id"},
    # How long a metadata log is and when it was asked is each broker's own; Kafka's controllers have a port of theirs.
    ApiKey.DESCRIBE_QUORUM: {
        "nodes.listeners",
        "topics.partitions.error_message",
        "topics.partitions.leader_epoch",
        "topics.partitions.high_watermark",
        "topics.partitions.current_voters.log_end_offset",
        "topics.partitions.current_voters.last_fetch_timestamp",
        "topics.partitions.current_voters.last_caught_up_timestamp",
    },
}
VERSIONS = [
    pytest.param(api.key, version, id=f"{api.name}-v{version}")
    for api in APIS.values()
    for version in range(api.min_version, api.max_version + 1)
]


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_our_answers_are_kafkas(both: Both, key: ApiKey, version: int, topic: str) -> None:
    """Asked the same, in the same order, both brokers say the same, but for ids, ports and wording."""
    scenario, ignoring = SCENARIOS[key], MAY_DIFFER.get(key, set())
    ours = [comparable(answer, ignoring) for answer in scenario(both.penstock, version, topic)]
    theirs = [comparable(answer, ignoring) for answer in scenario(both.kafka, version, topic)]
    for number, (our_answer, their_answer) in enumerate(zip(ours, theirs, strict=True)):
        assert our_answer == their_answer, f"answer {number} of the scenario"


@pytest.mark.parametrize("version", range(6))
def test_a_transactional_id_is_initialised_as_by_kafka(both: Both, version: int, topic: str) -> None:
    """Epochs, repeats, and what is refused."""
    ours, theirs = (
        [
            comparable(answer, {"producer_id"})
            for answer in transaction_scenarios.ask_init_transactional(each, version, topic)
        ]
        for each in both
    )
    assert ours == theirs

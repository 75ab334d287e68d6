"""Which handler serves which API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.kafka.wire.apis import ApiKey
from penstock.queue.call import Call
from penstock.queue.handlers.add_offsets_to_txn import handle_add_offsets_to_txn
from penstock.queue.handlers.add_partitions_to_txn import handle_add_partitions_to_txn
from penstock.queue.handlers.alter_partition_reassignments import handle_alter_partition_reassignments
from penstock.queue.handlers.alter_replica_log_dirs import handle_alter_replica_log_dirs
from penstock.queue.handlers.api_versions import handle_api_versions
from penstock.queue.handlers.consumer_group_describe import handle_consumer_group_describe
from penstock.queue.handlers.consumer_group_heartbeat import handle_consumer_group_heartbeat
from penstock.queue.handlers.create_partitions import handle_create_partitions
from penstock.queue.handlers.create_topics import handle_create_topics
from penstock.queue.handlers.delete_groups import handle_delete_groups
from penstock.queue.handlers.delete_records import handle_delete_records
from penstock.queue.handlers.delete_topics import handle_delete_topics
from penstock.queue.handlers.describe_acls import handle_describe_acls
from penstock.queue.handlers.describe_cluster import handle_describe_cluster
from penstock.queue.handlers.describe_configs import handle_describe_configs
from penstock.queue.handlers.describe_groups import handle_describe_groups
from penstock.queue.handlers.describe_log_dirs import handle_describe_log_dirs
from penstock.queue.handlers.describe_producers import handle_describe_producers
from penstock.queue.handlers.describe_quorum import handle_describe_quorum
from penstock.queue.handlers.describe_topic_partitions import handle_describe_topic_partitions
from penstock.queue.handlers.describe_transactions import handle_describe_transactions
from penstock.queue.handlers.elect_leaders import handle_elect_leaders
from penstock.queue.handlers.end_txn import handle_end_txn
from penstock.queue.handlers.find_coordinator import handle_find_coordinator
from penstock.queue.handlers.heartbeat import handle_heartbeat
from penstock.queue.handlers.incremental_alter_configs import handle_alter_configs
from penstock.queue.handlers.init_producer_id import handle_init_producer_id
from penstock.queue.handlers.join_group import handle_join_group
from penstock.queue.handlers.leave_group import handle_leave_group
from penstock.queue.handlers.list_config_resources import handle_list_config_resources
from penstock.queue.handlers.list_groups import handle_list_groups
from penstock.queue.handlers.list_offsets import handle_list_offsets
from penstock.queue.handlers.list_partition_reassignments import handle_list_partition_reassignments
from penstock.queue.handlers.list_transactions import handle_list_transactions
from penstock.queue.handlers.metadata import handle_metadata
from penstock.queue.handlers.offset_commit import handle_offset_commit
from penstock.queue.handlers.offset_delete import handle_offset_delete
from penstock.queue.handlers.offset_fetch import handle_offset_fetch
from penstock.queue.handlers.offset_for_leader_epoch import handle_offset_for_leader_epoch
from penstock.queue.handlers.sync_group import handle_sync_group
from penstock.queue.handlers.txn_offset_commit import handle_txn_offset_commit
from penstock.queue.handlers.write_txn_markers import handle_write_txn_markers

# Produce and Fetch, which decode their frame themselves, are called by the node.
HANDLERS: dict[int, Callable[[Call, Any], None]] = {
    ApiKey.LIST_OFFSETS: handle_list_offsets,
    ApiKey.METADATA: handle_metadata,
    ApiKey.FIND_COORDINATOR: handle_find_coordinator,
    ApiKey.JOIN_GROUP: handle_join_group,
    ApiKey.HEARTBEAT: handle_heartbeat,
    ApiKey.LEAVE_GROUP: handle_leave_group,
    ApiKey.SYNC_GROUP: handle_sync_group,
    ApiKey.DESCRIBE_GROUPS: handle_describe_groups,
    ApiKey.LIST_GROUPS: handle_list_groups,
    ApiKey.OFFSET_COMMIT: handle_offset_commit,
    ApiKey.OFFSET_FETCH: handle_offset_fetch,
    ApiKey.DELETE_GROUPS: handle_delete_groups,
    ApiKey.OFFSET_DELETE: handle_offset_delete,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: handle_consumer_group_heartbeat,
    ApiKey.CONSUMER_GROUP_DESCRIBE: handle_consumer_group_describe,
    ApiKey.DESCRIBE_LOG_DIRS: handle_describe_log_dirs,
    ApiKey.API_VERSIONS: handle_api_versions,
    ApiKey.CREATE_TOPICS: handle_create_topics,
    ApiKey.DELETE_TOPICS: handle_delete_topics,
    ApiKey.DELETE_RECORDS: handle_delete_records,
    ApiKey.INIT_PRODUCER_ID: handle_init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: handle_offset_for_leader_epoch,
    ApiKey.DESCRIBE_ACLS: handle_describe_acls,
    ApiKey.DESCRIBE_CONFIGS: handle_describe_configs,
    ApiKey.CREATE_PARTITIONS: handle_create_partitions,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: handle_alter_configs,
    ApiKey.DESCRIBE_CLUSTER: handle_describe_cluster,
    ApiKey.ADD_OFFSETS_TO_TXN: handle_add_offsets_to_txn,
    ApiKey.ADD_PARTITIONS_TO_TXN: handle_add_partitions_to_txn,
    ApiKey.DESCRIBE_PRODUCERS: handle_describe_producers,
    ApiKey.DESCRIBE_TRANSACTIONS: handle_describe_transactions,
    ApiKey.END_TXN: handle_end_txn,
    ApiKey.LIST_TRANSACTIONS: handle_list_transactions,
    ApiKey.TXN_OFFSET_COMMIT: handle_txn_offset_commit,
    ApiKey.WRITE_TXN_MARKERS: handle_write_txn_markers,
    ApiKey.ALTER_REPLICA_LOG_DIRS: handle_alter_replica_log_dirs,
    ApiKey.ELECT_LEADERS: handle_elect_leaders,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: handle_alter_partition_reassignments,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: handle_list_partition_reassignments,
    ApiKey.DESCRIBE_QUORUM: handle_describe_quorum,
    ApiKey.LIST_CONFIG_RESOURCES: handle_list_config_resources,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: handle_describe_topic_partitions,
}

"""The table of APIs this broker speaks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from penstock.kafka.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from penstock.kafka.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from penstock.kafka.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from penstock.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.kafka.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from penstock.kafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from penstock.kafka.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from penstock.kafka.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from penstock.kafka.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from penstock.kafka.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from penstock.kafka.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from penstock.kafka.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from penstock.kafka.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from penstock.kafka.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from penstock.kafka.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from penstock.kafka.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from penstock.kafka.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from penstock.kafka.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from penstock.kafka.wire.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from penstock.kafka.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from penstock.kafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.kafka.wire.messages.fetch import FetchRequest, FetchResponse
from penstock.kafka.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.kafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.kafka.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.kafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.kafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.kafka.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from penstock.kafka.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.kafka.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from penstock.kafka.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from penstock.kafka.wire.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from penstock.kafka.wire.messages.metadata import MetadataRequest, MetadataResponse
from penstock.kafka.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from penstock.kafka.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from penstock.kafka.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from penstock.kafka.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from penstock.kafka.wire.messages.produce import ProduceRequest, ProduceResponse
from penstock.kafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from penstock.kafka.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from penstock.kafka.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse


class ApiKey(IntEnum):
    """Kafka's numbers of the APIs."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    DESCRIBE_CONFIGS = 32
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    CREATE_PARTITIONS = 37
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_QUORUM = 55
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75


@dataclass(frozen=True, slots=True)
class Api:
    """One API: its messages and the versions of it that are served."""

    key: ApiKey
    name: str
    request: type[Message]
    response: type[Message]
    min_version: int
    max_version: int
    flexible: int

    def serves(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


def _api(key: ApiKey, request: type[Message], response: type[Message], max_version: int | None = None) -> Api:
    first, last = request.versions
    name = request.__name__.removesuffix("Request")
    return Api(key, name, request, response, first, last if max_version is None else max_version, request.flexible)


_TABLE = (
    _api(ApiKey.PRODUCE, ProduceRequest, ProduceResponse),
    _api(ApiKey.FETCH, FetchRequest, FetchResponse),
    _api(ApiKey.LIST_OFFSETS, ListOffsetsRequest, ListOffsetsResponse),
    _api(ApiKey.METADATA, MetadataRequest, MetadataResponse),
    _api(ApiKey.OFFSET_COMMIT, OffsetCommitRequest, OffsetCommitResponse),
    _api(ApiKey.OFFSET_FETCH, OffsetFetchRequest, OffsetFetchResponse),
    _api(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest, FindCoordinatorResponse),
    _api(ApiKey.JOIN_GROUP, JoinGroupRequest, JoinGroupResponse),
    _api(ApiKey.HEARTBEAT, HeartbeatRequest, HeartbeatResponse),
    _api(ApiKey.LEAVE_GROUP, LeaveGroupRequest, LeaveGroupResponse),
    _api(ApiKey.SYNC_GROUP, SyncGroupRequest, SyncGroupResponse),
    _api(ApiKey.DESCRIBE_GROUPS, DescribeGroupsRequest, DescribeGroupsResponse),
    _api(ApiKey.LIST_GROUPS, ListGroupsRequest, ListGroupsResponse),
    _api(ApiKey.DELETE_GROUPS, DeleteGroupsRequest, DeleteGroupsResponse),
    _api(ApiKey.OFFSET_DELETE, OffsetDeleteRequest, OffsetDeleteResponse),
    _api(ApiKey.API_VERSIONS, ApiVersionsRequest, ApiVersionsResponse),
    _api(ApiKey.CREATE_TOPICS, CreateTopicsRequest, CreateTopicsResponse),
    _api(ApiKey.DELETE_TOPICS, DeleteTopicsRequest, DeleteTopicsResponse),
    _api(ApiKey.DELETE_RECORDS, DeleteRecordsRequest, DeleteRecordsResponse),
    # Kafka 4.3 marks version 6 (two-phase commit) unstable and does not offer it.
    _api(ApiKey.INIT_PRODUCER_ID, InitProducerIdRequest, InitProducerIdResponse, max_version=5),
    _api(ApiKey.OFFSET_FOR_LEADER_EPOCH, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
    _api(ApiKey.ADD_PARTITIONS_TO_TXN, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse),
    _api(ApiKey.ADD_OFFSETS_TO_TXN, AddOffsetsToTxnRequest, AddOffsetsToTxnResponse),
    _api(ApiKey.END_TXN, EndTxnRequest, EndTxnResponse),
    _api(ApiKey.WRITE_TXN_MARKERS, WriteTxnMarkersRequest, WriteTxnMarkersResponse),
    _api(ApiKey.TXN_OFFSET_COMMIT, TxnOffsetCommitRequest, TxnOffsetCommitResponse),
    _api(ApiKey.DESCRIBE_ACLS, DescribeAclsRequest, DescribeAclsResponse),
    _api(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest, DescribeConfigsResponse),
    _api(ApiKey.CONSUMER_GROUP_HEARTBEAT, ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse),
    _api(ApiKey.CONSUMER_GROUP_DESCRIBE, ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse),
    _api(ApiKey.DESCRIBE_LOG_DIRS, DescribeLogDirsRequest, DescribeLogDirsResponse),
    _api(ApiKey.CREATE_PARTITIONS, CreatePartitionsRequest, CreatePartitionsResponse),
    _api(ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse),
    _api(ApiKey.DESCRIBE_CLUSTER, DescribeClusterRequest, DescribeClusterResponse),
    _api(ApiKey.DESCRIBE_PRODUCERS, DescribeProducersRequest, DescribeProducersResponse),
    _api(ApiKey.DESCRIBE_TRANSACTIONS, DescribeTransactionsRequest, DescribeTransactionsResponse),
    _api(ApiKey.ALTER_REPLICA_LOG_DIRS, AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse),
    _api(ApiKey.ELECT_LEADERS, ElectLeadersRequest, ElectLeadersResponse),
    _api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse),
    _api(ApiKey.LIST_PARTITION_REASSIGNMENTS, ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse),
    _api(ApiKey.DESCRIBE_QUORUM, DescribeQuorumRequest, DescribeQuorumResponse),
    _api(ApiKey.LIST_CONFIG_RESOURCES, ListConfigResourcesRequest, ListConfigResourcesResponse),
    _api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse),
    # Version 2 brings a pattern: a stranger's regular expression has no place in an event loop.
    _api(ApiKey.LIST_TRANSACTIONS, ListTransactionsRequest, ListTransactionsResponse, max_version=1),
)

APIS: dict[int, Api] = {int(api.key): api for api in _TABLE}

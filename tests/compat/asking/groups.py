"""A member of a classic group that says exactly what a test wants said."""

from __future__ import annotations

from asking.connection import Connection, Patient
from penstock.kafka.wire.message import encode
from penstock.kafka.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from penstock.kafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from penstock.kafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from penstock.kafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse

JOIN, SYNC, COMMIT = 9, 5, 9  # versions that the rest of a scenario speaks
MEMBER_ID_REQUIRED = 79


def join_request(
    group: str,
    member_id: str = "",
    *,
    instance_id: str | None = None,
    protocol_type: str = "consumer",
    protocols: tuple[str, ...] = ("range", "roundrobin"),
    session_ms: int = 10_000,
    version: int = JOIN,
) -> JoinGroupRequest:
    """A member that subscribes to nothing, and says its protocol's name in each protocol."""
    request = JoinGroupRequest(group, session_ms, member_id=member_id, protocol_type=protocol_type)
    request.protocols = [JoinGroupRequestProtocol(name, subscription(name)) for name in protocols]
    if version >= 1:
        request.rebalance_timeout_ms = 20_000
    if version >= 5:
        request.group_instance_id = instance_id
    return request


def subscription(said: str) -> bytes:
    """As Kafka's consumers write it: a version and the message."""
    return b"\0\0" + encode(ConsumerProtocolSubscription([], said.encode()), 0)


def join(connection: Connection | Patient, group: str, **said: object) -> JoinGroupResponse:
    """Join as a newcomer, with the second question that newer versions need; returns when the generation begins."""
    answer = connection.ask(join_request(group, **said), JOIN, JoinGroupResponse)  # type: ignore[arg-type]  # passed on
    if answer.error_code == MEMBER_ID_REQUIRED:
        again = join_request(group, answer.member_id, **said)  # type: ignore[arg-type]
        answer = connection.ask(again, JOIN, JoinGroupResponse)
    assert answer.error_code == 0, answer
    return answer


def sync_request(group: str, joined: JoinGroupResponse, *assigned: str, version: int = SYNC) -> SyncGroupRequest:
    """Ask for an assignment; `assigned` are the members that get their own id as one."""
    request = SyncGroupRequest(group, joined.generation_id, joined.member_id)
    if version >= 5:
        request.protocol_type, request.protocol_name = joined.protocol_type, joined.protocol_name
    request.assignments = [SyncGroupRequestAssignment(member_id, b"given") for member_id in assigned]
    return request


def form(connection: Connection | Patient, group: str, **said: object) -> JoinGroupResponse:
    """A stable group of one."""
    joined = join(connection, group, **said)
    synced = connection.ask(sync_request(group, joined, joined.member_id), SYNC, SyncGroupResponse)
    assert synced.error_code == 0, synced
    return joined


def commit_request(
    group: str,
    topic: str,
    *offsets: int,
    joined: JoinGroupResponse | None = None,
    metadata: str | None = "",
    version: int = COMMIT,
) -> OffsetCommitRequest:
    """Positions of partitions 0, 1, ..."""
    request = OffsetCommitRequest(group)
    if joined is not None:
        request.member_id, request.generation_id_or_member_epoch = joined.member_id, joined.generation_id
    partitions = [
        OffsetCommitRequestPartition(index, offset, committed_leader_epoch=0 if version >= 6 else -1)
        for index, offset in enumerate(offsets)
    ]
    for partition in partitions:
        partition.committed_metadata = metadata
    request.topics = [OffsetCommitRequestTopic(name=topic, partitions=partitions)]
    return request


def commit(connection: Connection | Patient, group: str, topic: str, *offsets: int) -> None:
    answer = connection.ask(commit_request(group, topic, *offsets), COMMIT, OffsetCommitResponse)
    codes = [part.error_code for answered in answer.topics for part in answered.partitions]
    assert codes == [0] * len(offsets)

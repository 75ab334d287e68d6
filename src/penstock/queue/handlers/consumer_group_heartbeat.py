"""ConsumerGroupHeartbeat: the one call of members of the newer protocol (KIP-848)."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from penstock.queue.call import Call
from penstock.queue.groups.consumer.group import LEAVING, RETURNING
from penstock.queue.groups.consumer.heartbeat import Beat

_MEMBERS_NAME_THEMSELVES = 1


def handle_consumer_group_heartbeat(call: Call, request: ConsumerGroupHeartbeatRequest) -> None:
    if (fault := _fault(request, call.header.api_version)) is not None:
        call.reply(ConsumerGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=fault))
        return
    owned = request.topic_partitions
    beat = Beat(
        group_id=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=None if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms,
        topics=None if request.subscribed_topic_names is None else tuple(request.subscribed_topic_names),
        pattern=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None if owned is None else {(each.topic_id, index): None for each in owned for index in each.partitions},
        client_id=call.header.client_id or "",
        client_host=call.client_host,
    )
    call.groups.beat(beat, call.reply, call.now_ms)


def _fault(request: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    """What is wrong with a heartbeat, whoever sends it."""
    if not request.group_id.strip():
        return "GroupId can't be empty."
    is_newcomer = request.member_epoch == 0
    if not request.member_id.strip() and (not is_newcomer or version >= _MEMBERS_NAME_THEMSELVES):
        return "MemberId can't be empty."
    if request.instance_id is not None and not request.instance_id.strip():
        return "InstanceId can't be empty."
    if request.rack_id is not None and not request.rack_id.strip():
        return "RackId can't be empty."
    if request.server_assignor is not None and not request.server_assignor.strip():
        return "ServerAssignor can't be empty."
    if request.member_epoch < RETURNING:
        return f"MemberEpoch is {request.member_epoch}, but must be at least {RETURNING}."
    if request.member_epoch == RETURNING and request.instance_id is None:
        return "InstanceId can't be null."
    if is_newcomer:
        return _newcomer_fault(request)
    if request.member_epoch != LEAVING and request.rebalance_timeout_ms == 0:
        return "RebalanceTimeoutMs must be positive."
    return None


def _newcomer_fault(request: ConsumerGroupHeartbeatRequest) -> str | None:
    if request.rebalance_timeout_ms <= 0:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.topic_partitions is None or request.topic_partitions:
        return "TopicPartitions must be empty when (re-)joining."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None

"""Heartbeat: a member of a classic group says that it lives."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.queue.call import Call
from penstock.queue.groups.consumer.classic_bridge import fault_of, heartbeat


def handle_heartbeat(call: Call, request: HeartbeatRequest) -> None:
    call.reply(HeartbeatResponse(error_code=_beat(call, request)))


def _beat(call: Call, request: HeartbeatRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    consumers = call.groups.consumers
    if (newer := consumers.groups.get(request.group_id)) is not None:
        fault = fault_of(newer, request.member_id, request.group_instance_id, request.generation_id)
        return fault or heartbeat(consumers, newer, request.member_id, call.now_ms)
    group = call.groups.groups.get(request.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if fault := group.fault_of(request.member_id, request.group_instance_id):
        return fault
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return call.groups.heartbeat(group, request.member_id, call.now_ms)

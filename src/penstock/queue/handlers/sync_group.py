"""SyncGroup: the leader brings what everybody gets; answered when that is durable."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from penstock.queue.call import Call
from penstock.queue.groups.classic.group import Group

_NAMES_PROTOCOL = 5


def handle_sync_group(call: Call, request: SyncGroupRequest) -> None:
    coordinator = call.groups
    group = coordinator.groups.get(request.group_id)
    if not request.group_id:
        call.reply(SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
    elif call.header.api_version >= _NAMES_PROTOCOL and None in (request.protocol_type, request.protocol_name):
        call.reply(SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
    elif request.group_id in coordinator.consumers.groups:
        coordinator.consumers.sync_classic(request, call.reply, call.now_ms)
    elif group is None:
        call.reply(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
    elif fault := _fault(group, request):
        call.reply(SyncGroupResponse(error_code=fault))
    else:
        assignments = {each.member_id: bytes(each.assignment) for each in request.assignments}
        coordinator.sync(group, request.member_id, assignments, call.reply, call.now_ms)


def _fault(group: Group, request: SyncGroupRequest) -> ErrorCode:
    if fault := group.fault_of(request.member_id, request.group_instance_id):
        return fault
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    said = (request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol)
    if any(theirs is not None and theirs != ours for theirs, ours in said):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE

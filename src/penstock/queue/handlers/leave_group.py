"""LeaveGroup: members go, and the others need not wait to miss them."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from penstock.queue.call import Call

_MANY_MEMBERS = 3


def handle_leave_group(call: Call, request: LeaveGroupRequest) -> None:
    if not request.group_id:
        call.reply(LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        return
    is_old = call.header.api_version < _MANY_MEMBERS
    leavers = [(each.member_id, each.group_instance_id) for each in request.members]
    if is_old:
        leavers = [(request.member_id, None)]

    def reply(codes: list[ErrorCode]) -> None:
        if is_old:
            call.reply(LeaveGroupResponse(error_code=codes[0]))
            return
        results = [MemberResponse(*leaver, code) for leaver, code in zip(leavers, codes, strict=True)]
        call.reply(LeaveGroupResponse(members=results))

    groups = call.groups
    group = groups.groups.get(request.group_id)
    if request.group_id in groups.consumers.groups:
        groups.consumers.leave_classic(request.group_id, leavers, reply, call.now_ms)
    elif group is None:
        reply([ErrorCode.UNKNOWN_MEMBER_ID] * len(leavers))
    else:
        reply(groups.leave(group, leavers, call.now_ms))

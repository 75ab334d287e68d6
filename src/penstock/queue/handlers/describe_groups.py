"""DescribeGroups: classic groups and their members."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from penstock.queue.call import Call
from penstock.queue.groups.classic.group import Group, State

_SAYS_NOT_FOUND = 6


def handle_describe_groups(call: Call, request: DescribeGroupsRequest) -> None:
    call.reply(DescribeGroupsResponse(groups=[_describe(call, group_id) for group_id in request.groups]))


def _describe(call: Call, group_id: str) -> DescribedGroup:
    group = call.groups.groups.get(group_id)
    if group is not None:
        return _described(group)
    if call.header.api_version >= _SAYS_NOT_FOUND:
        why = f"Group {group_id} not found."
        return DescribedGroup(ErrorCode.GROUP_ID_NOT_FOUND, why, group_id, State.DEAD.value)
    return DescribedGroup(group_id=group_id, group_state=State.DEAD.value)


def _described(group: Group) -> DescribedGroup:
    is_stable = group.state is State.STABLE
    members = [
        DescribedGroupMember(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.protocols.get(group.protocol or "", b"") if is_stable else b"",
            member.assignment if is_stable else b"",
        )
        for member in group.members.values()
    ]
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type,
        protocol_data=(group.protocol or "") if is_stable else "",
        members=members,
    )

"""ListGroups: every group this node knows."""

from __future__ import annotations

from penstock.broker.call import Call
from penstock.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

CLASSIC = "classic"


def handle_list_groups(call: Call, request: ListGroupsRequest) -> None:
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    found = [
        ListedGroup(group.group_id, group.protocol_type, group.state.value, CLASSIC)
        for group in call.node.groups.groups.values()
        if (not states or group.state.value.lower() in states) and (not types or CLASSIC in types)
    ]
    call.reply(ListGroupsResponse(groups=found))

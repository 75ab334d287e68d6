"""ListGroups: every group this node knows."""

from __future__ import annotations

from penstock.kafka.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from penstock.queue.call import Call
from penstock.queue.groups.classic.group import CONSUMER

_CLASSIC, _CONSUMER = "classic", "consumer"


def handle_list_groups(call: Call, request: ListGroupsRequest) -> None:
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    groups = call.groups
    found = [
        ListedGroup(group.group_id, group.protocol_type, group.state.value, _CLASSIC)
        for group in groups.groups.values()
    ]
    found += [ListedGroup(g.group_id, CONSUMER, g.state, _CONSUMER) for g in groups.consumers.groups.values()]
    listed = [
        group
        for group in found
        if (not states or group.group_state.lower() in states) and (not types or group.group_type in types)
    ]
    call.reply(ListGroupsResponse(groups=listed))

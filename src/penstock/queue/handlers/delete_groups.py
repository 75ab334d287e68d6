"""DeleteGroups: forget empty groups with their positions."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from penstock.queue.call import Call


def handle_delete_groups(call: Call, request: DeleteGroupsRequest) -> None:
    codes: dict[str, ErrorCode] = {}

    def finish(code: ErrorCode) -> None:
        results = [DeletableGroupResult(group_id, refused or code) for group_id, refused in codes.items()]
        call.reply(DeleteGroupsResponse(results=results))

    call.groups.delete(list(dict.fromkeys(request.groups_names)), codes, finish, call.now_ms)

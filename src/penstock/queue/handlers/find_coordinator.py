"""FindCoordinator: this node looks after every group."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from penstock.queue.call import Call
from penstock.queue.core.catalog import NODE_ID

GROUP, TRANSACTION = 0, 1
_MANY_KEYS = 4


def handle_find_coordinator(call: Call, request: FindCoordinatorRequest) -> None:
    is_known = request.key_type in (GROUP, TRANSACTION)
    code = ErrorCode.NONE if is_known else ErrorCode.INVALID_REQUEST
    why = None if is_known else f"this node looks after groups and transactions, not after type {request.key_type}"
    host, port = call.host.address if is_known else ("", -1)
    node_id = NODE_ID if is_known else -1
    if call.header.api_version < _MANY_KEYS:
        message = None if call.header.api_version < 1 else why
        call.reply(
            FindCoordinatorResponse(error_code=code, error_message=message, node_id=node_id, host=host, port=port)
        )
        return
    found = [Coordinator(key, node_id, host, port, code, why) for key in request.coordinator_keys]
    call.reply(FindCoordinatorResponse(coordinators=found))

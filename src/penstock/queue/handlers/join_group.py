"""JoinGroup: become a member; answered when the next generation has begun."""

from __future__ import annotations

from penstock.kafka.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.queue.call import Call
from penstock.queue.groups.classic.join import Joiner

_REBALANCE_TIMEOUT, _KNOWN_ID, _NULL_PROTOCOL, _SKIPS_ASSIGNMENT = 1, 4, 7, 9


def handle_join_group(call: Call, request: JoinGroupRequest) -> None:
    version = call.header.api_version
    rebalance_ms = request.rebalance_timeout_ms if version >= _REBALANCE_TIMEOUT else request.session_timeout_ms
    joiner = Joiner(
        member_id=request.member_id,
        instance_id=request.group_instance_id,
        client_id=call.header.client_id or "",
        client_host=call.client_host,
        session_timeout_ms=request.session_timeout_ms,
        rebalance_timeout_ms=max(rebalance_ms, 0),
        protocol_type=request.protocol_type,
        protocols={protocol.name: bytes(protocol.metadata) for protocol in request.protocols},
        needs_known_id=version >= _KNOWN_ID,
        can_skip_assignment=version >= _SKIPS_ASSIGNMENT,
    )

    def reply(response: JoinGroupResponse) -> None:
        if response.error_code:
            response.protocol_name = "" if version < _NULL_PROTOCOL else None
        call.reply(response)

    call.groups.join(request.group_id, joiner, reply, call.now_ms)

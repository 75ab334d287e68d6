"""AddOffsetsToTxn: positions of a group will become true with a transaction."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from penstock.queue.call import Call
from penstock.queue.transactions.rules import Owner

_SAYS_FENCED = 2


def handle_add_offsets_to_txn(call: Call, request: AddOffsetsToTxnRequest) -> None:
    transactions = call.transactions

    def finish(code: ErrorCode) -> None:
        if code is ErrorCode.PRODUCER_FENCED and call.header.api_version < _SAYS_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        call.reply(AddOffsetsToTxnResponse(error_code=code))

    code = ErrorCode.INVALID_REQUEST
    if request.transactional_id and request.group_id:
        code = transactions.refuse(request.transactional_id, Owner(request.producer_id, request.producer_epoch))
    if code or transactions.holds(request.transactional_id, request.group_id):
        finish(code)
    else:
        transactions.add(request.transactional_id, (), [request.group_id], 0, finish, call.now_ms)

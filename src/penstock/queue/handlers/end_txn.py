"""EndTxn: commit or abort, answered when it can be seen."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.queue.call import Call
from penstock.queue.transactions.rules import BY_EPOCH, Owner

_SAYS_FENCED, _BY_EPOCH = 2, 5


def handle_end_txn(call: Call, request: EndTxnRequest) -> None:
    version = call.header.api_version

    def reply(code: ErrorCode, owner: Owner) -> None:
        if code is ErrorCode.PRODUCER_FENCED and version < _SAYS_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        if code:
            call.reply(EndTxnResponse(error_code=code))
        else:
            call.reply(EndTxnResponse(producer_id=owner.producer_id, producer_epoch=owner.epoch))

    if not request.transactional_id:
        reply(ErrorCode.INVALID_REQUEST, Owner(-1, -1))
        return
    call.transactions.end(
        request.transactional_id,
        Owner(request.producer_id, request.producer_epoch),
        request.committed,
        BY_EPOCH if version >= _BY_EPOCH else 0,
        reply,
        call.now_ms,
    )

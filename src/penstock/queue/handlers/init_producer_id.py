"""InitProducerId: ids for producers, never given twice; under a transactional id the one before is fenced."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.queue.call import Call, close_for_changes
from penstock.queue.transactions.coordinator import REFUSED_ID, refuse_id
from penstock.queue.transactions.rules import Owner

_SAYS_FENCED = 4


def handle_init_producer_id(call: Call, request: InitProducerIdRequest) -> None:
    if request.transactional_id is not None:
        _init_transactional(call, request.transactional_id, request)
        return

    def taken(code: ErrorCode, producer_id: int) -> None:
        call.reply(InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=0))

    if not call.host.producer_ids.take(taken, call.now_ms):
        close_for_changes(call)


def _init_transactional(call: Call, transactional_id: str, request: InitProducerIdRequest) -> None:
    def reply(code: ErrorCode, owner: Owner) -> None:
        if code is ErrorCode.PRODUCER_FENCED and call.header.api_version < _SAYS_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        call.reply(InitProducerIdResponse(error_code=code, producer_id=owner.producer_id, producer_epoch=owner.epoch))

    nobody = Owner(-1, -1)
    has_id, has_epoch = request.producer_id >= 0, request.producer_epoch >= 0
    if not transactional_id or has_id != has_epoch:
        reply(ErrorCode.INVALID_REQUEST, nobody)
    elif len(transactional_id) > call.host.config.transactional_id_chars_max:
        refuse_id(call.host.notes, transactional_id, "it is too long (transactional_id_chars_max)")
        reply(REFUSED_ID, nobody)
    elif not 0 < request.transaction_timeout_ms <= call.host.config.transaction_timeout_ms_max:
        reply(ErrorCode.INVALID_TRANSACTION_TIMEOUT, nobody)
    else:
        expected = Owner(request.producer_id, request.producer_epoch) if has_id else None
        call.transactions.init(transactional_id, expected, request.transaction_timeout_ms, reply, call.now_ms)

"""InitProducerId: ids for producers, never given twice; under a transactional id the one before is fenced."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.broker.call import Call
from penstock.broker.changes import Change, ProducerIdsReserved
from penstock.broker.transactions.rules import Owner
from penstock.config import clipped
from penstock.errors import ErrorCode
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

if TYPE_CHECKING:
    from penstock.broker.node import Node

BLOCK = 1_000  # ids reserved with one durable record; a restart skips what is left of them
# The only answer about an id after which every client stops asking: librdkafka repeats what is invalid for ever.
REFUSED_ID = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_SAYS_FENCED = 4

OnProducerId = Callable[[ErrorCode, int], None]


def handle_init_producer_id(call: Call, request: InitProducerIdRequest) -> None:
    if request.transactional_id is not None:
        _init_transactional(call, request.transactional_id, request)
        return

    def taken(code: ErrorCode, producer_id: int) -> None:
        call.reply(InitProducerIdResponse(error_code=code, producer_id=producer_id, producer_epoch=0))

    if not take_producer_id(call.node, taken, call.now_ms):
        call.node.close(call.slot.connection, "limit", "too many changes of topics are waiting (metadata_queue_max)")


def take_producer_id(node: Node, done: OnProducerId, now_ms: int) -> bool:
    """Give a producer id that nobody had, once it is durable that nobody else will; False if too many wait for one."""

    def plan() -> list[Change]:
        if node.next_producer_id < node.catalog.producer_ids_below:
            return []
        return [ProducerIdsReserved(node.catalog.producer_ids_below + BLOCK)]

    def finish(code: ErrorCode) -> None:
        if code:
            done(code, -1)
            return
        producer_id = node.next_producer_id
        node.next_producer_id += 1
        done(ErrorCode.NONE, producer_id)

    is_taken = node.meta.submit(plan, finish, now_ms)
    node.dirty[node.meta.partition] = None
    return is_taken


def refuse_id(node: Node, transactional_id: str, reason: str) -> None:
    """Say in the log what the code of the answer cannot."""
    node.note("warning", "transactional id refused", transactional_id=clipped(transactional_id), reason=reason)


def _init_transactional(call: Call, transactional_id: str, request: InitProducerIdRequest) -> None:
    def reply(code: ErrorCode, owner: Owner) -> None:
        if code is ErrorCode.PRODUCER_FENCED and call.header.api_version < _SAYS_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        call.reply(InitProducerIdResponse(error_code=code, producer_id=owner.producer_id, producer_epoch=owner.epoch))

    nobody = Owner(-1, -1)
    has_id, has_epoch = request.producer_id >= 0, request.producer_epoch >= 0
    if not transactional_id or has_id != has_epoch:
        reply(ErrorCode.INVALID_REQUEST, nobody)
    elif len(transactional_id) > call.node.config.transactional_id_chars_max:
        refuse_id(call.node, transactional_id, "it is too long (transactional_id_chars_max)")
        reply(REFUSED_ID, nobody)
    elif not 0 < request.transaction_timeout_ms <= call.node.config.transaction_timeout_ms_max:
        reply(ErrorCode.INVALID_TRANSACTION_TIMEOUT, nobody)
    else:
        expected = Owner(request.producer_id, request.producer_epoch) if has_id else None
        call.node.transactions.init(transactional_id, expected, request.transaction_timeout_ms, reply, call.now_ms)

"""InitProducerId: ids for idempotent producers, never given twice."""

from __future__ import annotations

from penstock.broker.call import Call
from penstock.broker.changes import Change, ProducerIdsReserved
from penstock.errors import ErrorCode
from penstock.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

BLOCK = 1_000  # ids reserved with one durable record; a restart skips what is left of them


def handle_init_producer_id(call: Call, request: InitProducerIdRequest) -> None:
    node = call.node
    if request.transactional_id is not None:
        call.reply(InitProducerIdResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        return

    def plan() -> list[Change]:
        if node.next_producer_id < node.catalog.producer_ids_below:
            return []
        return [ProducerIdsReserved(node.catalog.producer_ids_below + BLOCK)]

    def finish(code: ErrorCode) -> None:
        if code:
            call.reply(InitProducerIdResponse(error_code=code))
            return
        producer_id = node.next_producer_id
        node.next_producer_id += 1
        call.reply(InitProducerIdResponse(producer_id=producer_id, producer_epoch=0))

    node.change(call, plan, finish)

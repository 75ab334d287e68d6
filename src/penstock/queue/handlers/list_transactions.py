"""ListTransactions: the transactional ids this node knows."""

from __future__ import annotations

from penstock.kafka.wire.messages.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from penstock.queue.call import Call
from penstock.queue.transactions.changes import State, Transaction

_STATES = {state.value for state in State}
_ALSO_KAFKAS = {"Dead", "PrepareEpochFence"}  # states that it never shows


def handle_list_transactions(call: Call, request: ListTransactionsRequest) -> None:
    known = call.transactions.table.transactions.values()
    found = [
        ListedTransaction(each.transactional_id, each.producer_id, each.state.value)
        for each in known
        if _passes(each, request, call.now_ms)
    ]
    unknown = [name for name in request.state_filters if name not in _STATES | _ALSO_KAFKAS]
    call.reply(ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found))


def _passes(transaction: Transaction, request: ListTransactionsRequest, now_ms: int) -> bool:
    if request.producer_id_filters and transaction.producer_id not in request.producer_id_filters:
        return False
    if request.state_filters and transaction.state.value not in request.state_filters:
        return False
    return request.duration_filter < 0 or now_ms - transaction.started_ms > request.duration_filter

"""DescribeTransactions: how far transactions have come."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.describe_transactions import (
    DescribedTransaction,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionTopic,
)
from penstock.queue.call import Call


def handle_describe_transactions(call: Call, request: DescribeTransactionsRequest) -> None:
    found = [_describe(call, transactional_id) for transactional_id in request.transactional_ids]
    call.reply(DescribeTransactionsResponse(transaction_states=found))


def _describe(call: Call, transactional_id: str) -> DescribedTransaction:
    if not transactional_id:
        return DescribedTransaction(ErrorCode.INVALID_REQUEST, transactional_id)
    known = call.transactions.table.get(transactional_id)
    if known is None:
        return DescribedTransaction(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    topics: dict[str, TransactionTopic] = {}
    for topic_id, index in known.partitions:
        topic = call.host.catalog.by_id(topic_id)
        if topic is not None:
            topics.setdefault(topic.name, TransactionTopic(topic.name)).partitions.append(index)
    return DescribedTransaction(
        ErrorCode.NONE,
        transactional_id,
        known.state.value,
        known.timeout_ms,
        known.started_ms,
        known.producer_id,
        known.epoch,
        list(topics.values()),
    )

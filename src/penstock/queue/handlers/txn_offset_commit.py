"""TxnOffsetCommit: positions that become true with a transaction, never before."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from penstock.queue.call import Call
from penstock.queue.groups.changes import Position
from penstock.queue.transactions.rules import BY_EPOCH, Owner

_SAYS_ABORTABLE, _ADDS_ITSELF = 4, 5


def handle_txn_offset_commit(call: Call, request: TxnOffsetCommitRequest) -> None:
    refused = _refuse(call, request)
    positions: list[Position] = []
    response = TxnOffsetCommitResponse()
    for topic in request.topics:
        result = TxnOffsetCommitResponseTopic(topic.name)
        response.topics.append(result)
        known = call.host.catalog.topics.get(topic.name)
        for asked in topic.partitions:
            code = refused
            if not code and (known is None or not 0 <= asked.partition_index < known.partitions):
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif not code:
                code = _refuse_size(call, asked)
            result.partitions.append(TxnOffsetCommitResponsePartition(asked.partition_index, code))
            if not code and known is not None:
                metadata = asked.committed_metadata or ""
                place = (known.topic_id, asked.partition_index, asked.committed_offset, asked.committed_leader_epoch)
                positions.append(Position(*place, metadata, call.now_ms))
    _hold(call, request, positions, response)


def _hold(
    call: Call, request: TxnOffsetCommitRequest, positions: list[Position], response: TxnOffsetCommitResponse
) -> None:
    missing = 1

    def finish(code: ErrorCode) -> None:
        nonlocal missing
        missing -= 1
        for result in response.topics if code else ():
            for partition in result.partitions:
                partition.error_code = partition.error_code or code
        if not missing:
            call.reply(response)

    if positions:
        if not call.transactions.holds(request.transactional_id, request.group_id):
            missing += 1
            call.transactions.add(request.transactional_id, (), [request.group_id], BY_EPOCH, finish, call.now_ms)
        missing += 1
        owner = (request.producer_id, request.producer_epoch)
        call.groups.hold(request.group_id, *owner, positions, finish, call.now_ms)
    finish(ErrorCode.NONE)


def _refuse(call: Call, request: TxnOffsetCommitRequest) -> ErrorCode:
    """Why nothing of the request is taken, as its version says it."""
    version, transactions = call.header.api_version, call.transactions
    if not request.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    code = transactions.refuse(request.transactional_id, Owner(request.producer_id, request.producer_epoch))
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.CONCURRENT_TRANSACTIONS and version < _ADDS_ITSELF:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE  # known to all as a reason to try again
    if code:
        return code
    if version < _ADDS_ITSELF and not transactions.holds(request.transactional_id, request.group_id):
        return ErrorCode.TRANSACTION_ABORTABLE if version >= _SAYS_ABORTABLE else ErrorCode.INVALID_TXN_STATE
    return call.groups.refuse_hold(
        request.group_id, request.member_id, request.group_instance_id, request.generation_id, call.now_ms
    )


def _refuse_size(call: Call, asked: TxnOffsetCommitRequestPartition) -> ErrorCode:
    config, table = call.host.config, call.groups.table
    size = len(asked.committed_metadata or "")
    if size > config.offset_metadata_bytes_max:
        return ErrorCode.OFFSET_METADATA_TOO_LARGE
    return ErrorCode.INVALID_COMMIT_OFFSET_SIZE if table.bytes + size > config.group_bytes_max else ErrorCode.NONE

"""AddPartitionsToTxn: partitions belong to a transaction before anything is written to them."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from penstock.queue.call import Call
from penstock.queue.transactions.changes import PartitionKey
from penstock.queue.transactions.rules import Owner

_SAYS_FENCED, _MANY = 2, 4


class _Answer:
    """The answer for one transaction, partition by partition."""

    def __init__(self, call: Call, asked: AddPartitionsToTxnTransaction) -> None:
        self.transactional_id = asked.transactional_id
        self.keys: list[PartitionKey] = []
        self.results: list[AddPartitionsToTxnTopicResult] = []
        self._found: list[tuple[PartitionKey, AddPartitionsToTxnPartitionResult]] = []
        for topic in asked.topics:
            self.results.append(self._result(call, topic))

    def _result(self, call: Call, topic: AddPartitionsToTxnTopic) -> AddPartitionsToTxnTopicResult:
        known = call.host.catalog.topics.get(topic.name)
        result = AddPartitionsToTxnTopicResult(topic.name)
        for index in topic.partitions:
            one = AddPartitionsToTxnPartitionResult(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            result.results_by_partition.append(one)
            if known is not None and 0 <= index < known.partitions:
                one.partition_error_code = ErrorCode.NONE
                self.keys.append((known.topic_id, index))
                self._found.append((self.keys[-1], one))
        return result

    @property
    def is_whole(self) -> bool:
        """Whether every partition asked for is there."""
        return all(one.partition_error_code == ErrorCode.NONE for r in self.results for one in r.results_by_partition)

    def say(self, code: ErrorCode, version: int) -> None:
        """The same for all that are there."""
        for key, _ in self._found:
            self.say_one(key, code, version)

    def say_one(self, key: PartitionKey, code: ErrorCode, version: int) -> None:
        if code is ErrorCode.PRODUCER_FENCED and version < _SAYS_FENCED:
            code = ErrorCode.INVALID_PRODUCER_EPOCH
        for found, one in self._found:
            if found == key:
                one.partition_error_code = code


def handle_add_partitions_to_txn(call: Call, request: AddPartitionsToTxnRequest) -> None:
    version = call.header.api_version
    asked = request.transactions
    if version < _MANY:
        asked = [
            AddPartitionsToTxnTransaction(
                request.v3_and_below_transactional_id,
                request.v3_and_below_producer_id,
                request.v3_and_below_producer_epoch,
                False,
                request.v3_and_below_topics,
            )
        ]
    answers = [_Answer(call, one) for one in asked]
    missing = len(asked) + 1

    def done() -> None:
        nonlocal missing
        missing -= 1
        if missing:
            return
        if version < _MANY:
            call.reply(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=answers[0].results))
        else:
            results = [AddPartitionsToTxnResult(each.transactional_id, each.results) for each in answers]
            call.reply(AddPartitionsToTxnResponse(results_by_transaction=results))

    for one, answer in zip(asked, answers, strict=True):
        _add(call, one, answer, done)
    done()


def _add(call: Call, asked: AddPartitionsToTxnTransaction, answer: _Answer, done: Callable[[], None]) -> None:
    version, transactions = call.header.api_version, call.transactions
    code = ErrorCode.INVALID_REQUEST
    if asked.transactional_id:
        code = transactions.refuse(asked.transactional_id, Owner(asked.producer_id, asked.producer_epoch))
    if not answer.is_whole:
        code = ErrorCode.OPERATION_NOT_ATTEMPTED
    if code:
        answer.say(code, version)
        done()
        return
    outside = [key for key in answer.keys if not transactions.holds(asked.transactional_id, key)]
    if asked.verify_only:
        for key in outside:
            answer.say_one(key, ErrorCode.TRANSACTION_ABORTABLE, version)
        done()
        return

    def finish(code: ErrorCode) -> None:
        answer.say(code, version)
        done()

    if outside:
        transactions.add(asked.transactional_id, answer.keys, (), 0, finish, call.now_ms)
    else:
        finish(ErrorCode.NONE)

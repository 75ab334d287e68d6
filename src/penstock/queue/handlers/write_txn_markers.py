"""WriteTxnMarkers: an operator ends a transaction that hangs in single partitions."""

from __future__ import annotations

from typing import NamedTuple

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from penstock.queue.call import Call
from penstock.queue.core.partition import Partition
from penstock.queue.transactions.markers import end_in


class _Pending:
    """The answer, which waits for every marker to become durable."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.missing = 1
        self.response = WriteTxnMarkersResponse()

    def done(self) -> None:
        self.missing -= 1
        if not self.missing:
            self.call.reply(self.response)


class _One(NamedTuple):
    """One marker on its way to the disk."""

    pending: _Pending
    result: WritableTxnMarkerPartitionResult

    def done(self, code: ErrorCode) -> None:
        self.result.error_code = code
        self.pending.done()


def handle_write_txn_markers(call: Call, request: WriteTxnMarkersRequest) -> None:
    pending = _Pending(call)
    for marker in request.markers:
        result = WritableTxnMarkerResult(marker.producer_id)
        pending.response.markers.append(result)
        for topic in marker.topics:
            parts = [WritableTxnMarkerPartitionResult(index) for index in topic.partition_indexes]
            result.topics.append(WritableTxnMarkerTopicResult(topic.name, parts))
            for part in parts:
                pending.missing += 1
                _write(call, topic.name, marker, _One(pending, part))
    pending.done()


def _write(call: Call, name: str, marker: WritableTxnMarker, one: _One) -> None:
    host = call.host
    topic = host.catalog.topics.get(name)
    partition = host.partition(topic, one.result.partition_index, call.now_ms) if topic is not None else None
    if not isinstance(partition, Partition):
        one.done(partition or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return
    producer = partition.log.producers.get(marker.producer_id)
    if producer is not None and marker.producer_epoch < producer.epoch:
        one.done(ErrorCode.INVALID_PRODUCER_EPOCH)
        return
    owner = (marker.producer_id, marker.producer_epoch)
    end_in(host, partition, *owner, marker.transaction_result, one, call.now_ms)

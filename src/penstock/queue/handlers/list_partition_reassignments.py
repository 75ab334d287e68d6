"""ListPartitionReassignments: with one node, no replica moves."""

from __future__ import annotations

from penstock.kafka.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from penstock.queue.call import Call


def handle_list_partition_reassignments(call: Call, request: ListPartitionReassignmentsRequest) -> None:
    call.reply(ListPartitionReassignmentsResponse(error_message=None))

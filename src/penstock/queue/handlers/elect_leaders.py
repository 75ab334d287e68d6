"""ElectLeaders: whoever is the only one leads already."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.elect_leaders import (
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ReplicaElectionResult,
)
from penstock.queue.call import Call

_PREFERRED, _UNCLEAN = 0, 1
_TEXTS: dict[int, str] = {
    ErrorCode.ELECTION_NOT_NEEDED: "this node leads it",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such partition",
    ErrorCode.INVALID_REQUEST: "there are elections of type 0, preferred, and 1, unclean",
}


def handle_elect_leaders(call: Call, request: ElectLeadersRequest) -> None:
    """Who names no partitions hears of those that changed leaders: of none."""
    topics = call.host.catalog.topics
    if request.topic_partitions is None:
        call.reply(ElectLeadersResponse(replica_election_results=[ReplicaElectionResult(name) for name in topics]))
        return
    response = ElectLeadersResponse()
    if request.election_type not in (_PREFERRED, _UNCLEAN):
        response.error_code = ErrorCode.INVALID_REQUEST
    for asked in request.topic_partitions:
        known = topics.get(asked.topic)
        count = known.partitions if known is not None else 0
        codes = [(index, response.error_code or _code(index, count)) for index in asked.partitions]
        results = [ElectLeadersPartitionResult(index, code, _TEXTS[code]) for index, code in codes]
        response.replica_election_results.append(ReplicaElectionResult(asked.topic, results))
    call.reply(response)


def _code(index: int, count: int) -> ErrorCode:
    return ErrorCode.ELECTION_NOT_NEEDED if 0 <= index < count else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

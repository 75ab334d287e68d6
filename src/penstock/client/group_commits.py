"""Commits offsets of consumer groups that have no members.

librdkafka's AlterConsumerGroupOffsets ends the process while a broker is away: `rd_kafka_enq_once_del_source_return:
Assertion eonce->refcnt > 0` (2.16). So these are requests of our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from penstock.client.raw_requests import BareConnection
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget
from penstock.kafka.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from penstock.kafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)

_FIND_VERSION, _COMMIT_VERSION = 4, 8  # both since Kafka 3.0
_GROUP = 0
Offsets = Mapping[str, Mapping[int, int]]  # topic, partition, next offset


class GroupCommits:
    """Connections to the coordinators of groups. Every call blocks; PenstockError closes all, and they open again."""

    def __init__(self, queue: KafkaTarget) -> None:
        self._queue = queue
        self._coordinators: dict[str, BareConnection] = {}  # by group
        self._connections: dict[tuple[str, int], BareConnection] = {}

    def commit(self, group: str, offsets: Offsets) -> None:
        """Commit the offsets of a group without members; PenstockError if it has some, or the queue is away."""
        try:
            self._commit(group, offsets)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._coordinators.clear()
        for connection in self._connections.values():
            with suppress(OSError):
                connection.close()
        self._connections.clear()

    def _commit(self, group: str, offsets: Offsets) -> None:
        coordinator = self._coordinators.get(group)
        if coordinator is None:
            coordinator = self._coordinators[group] = self._connect(self._find(group))
        topics = [
            OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
                    for partition, offset in parts.items()
                ],
            )
            for topic, parts in offsets.items()
        ]
        request = OffsetCommitRequest(group_id=group, topics=topics)
        answer = coordinator.ask(request, _COMMIT_VERSION, OffsetCommitResponse)
        codes = {partition.error_code for topic in answer.topics for partition in topic.partitions} - {0}
        if codes:
            raise PenstockError(f"the offsets of the group {group} cannot be committed: error {min(codes)}")

    def _find(self, group: str) -> Coordinator:
        request = FindCoordinatorRequest(key_type=_GROUP, coordinator_keys=[group])
        with BareConnection(self._queue) as connection:
            (found,) = connection.ask(request, _FIND_VERSION, FindCoordinatorResponse).coordinators
        if found.error_code:
            raise PenstockError(f"the group {group} has no coordinator now: error {found.error_code}")
        return found

    def _connect(self, coordinator: Coordinator) -> BareConnection:
        place = coordinator.host, coordinator.port
        if place not in self._connections:
            self._connections[place] = BareConnection(self._queue.at(*place))
        return self._connections[place]

"""Members of the newer group protocol (KIP-848)."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from penstock.kafka.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from penstock.kafka.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from penstock.kafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from stage.nodes import Stage

NEVER_MS = 2**31 - 1


class Newer:
    """A member of the newer protocol that does as it is told, unless a test says otherwise."""

    def __init__(self, stage: Stage, name: str, topics: list[str] | None = None, **said: Any) -> None:
        self.stage = stage
        self.name = name
        self.epoch = 0
        self.has: dict[UUID, list[int]] = {}
        self.said = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": topics or ["rain"], **said}

    def beat(self, *, owned: dict[UUID, list[int]] | None = None, **said: Any) -> Any:
        """Say what it has, and take what it is given."""
        has = [TopicPartitions(topic, parts) for topic, parts in (self.has if owned is None else owned).items()]
        request = ConsumerGroupHeartbeatRequest("g", self.name, self.epoch, topic_partitions=has)
        for name, value in (self.said | said).items() if self.epoch == 0 else said.items():
            setattr(request, name, value)
        if request.instance_id is None:
            request.instance_id = self.said.get("instance_id")
        answer = self.stage.ask(request, 1)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.has = {part.topic_id: part.partitions for part in answer.assignment.topic_partitions}
        return answer

    @property
    def count(self) -> int:
        return sum(map(len, self.has.values()))

    def commit(self, version: int = 9) -> int:
        request = OffsetCommitRequest("g", self.epoch, self.name)
        request.topics = [OffsetCommitRequestTopic("rain", partitions=[OffsetCommitRequestPartition(0, 5)])]
        code: int = self.stage.ask(request, version).topics[0].partitions[0].error_code
        return code


def settle(*members: Newer) -> None:
    for _ in range(6):
        for member in members:
            member.beat()


def described(stage: Stage) -> Any:
    (group,) = stage.ask(ConsumerGroupDescribeRequest(["g"])).groups
    return group


def stage_with(partitions: int = 6, **settings: Any) -> Stage:
    stage = Stage(**settings)
    stage.topic(partitions=partitions)
    return stage

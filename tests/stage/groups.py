"""Members of a group, each on a connection of its own, asked by tests what they were told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.heartbeat import HeartbeatRequest
from penstock.kafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.kafka.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.kafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.kafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from stage.nodes import Stage


class StageMember:
    """Joins without waiting; `joined` and `synced` take the answer when it has come."""

    def __init__(self, party: Party, number: int) -> None:
        self.party = party
        self.number = number
        self.client = number + 1
        self.member_id = ""
        self.generation = -1

    @property
    def stage(self) -> Stage:
        return self.party.stage

    def answers(self) -> list[Any]:
        return [message for _, message in self.stage.answers(self.client)]

    def _one(self) -> Any:
        (answer,) = self.answers()
        return answer

    def _join(self, group: str, instance: str | None, protocols: dict[str, bytes], version: int) -> None:
        request = JoinGroupRequest(
            group, self.party.session_ms, self.party.rebalance_ms, self.member_id, instance, "consumer"
        )
        request.protocols = [JoinGroupRequestProtocol(name, data) for name, data in protocols.items()]
        self.stage.send(request, version, self.client)

    def ask_for_id(self, group: str = "g") -> None:
        self._join(group, None, {"range": b""}, 9)

    def join(self, *, instance: str | None = None, protocols: dict[str, bytes] | None = None, version: int = 9) -> None:
        """Ask to join; a newcomer is given its id first."""
        protocols = {"range": b"", "sticky": b""} if protocols is None else protocols
        if not self.member_id and instance is None:
            self._join("g", None, protocols, version)
            answer = self._one()
            self.member_id = answer.member_id
            if answer.error_code != ErrorCode.MEMBER_ID_REQUIRED:
                self.refused = answer
                return
        self._join("g", instance, protocols, version)

    def joined(self) -> Any:
        """What the last request to join was answered with."""
        refused, self.refused = getattr(self, "refused", None), None
        answer = refused if refused is not None else self._one()
        if not answer.error_code:
            self.member_id, self.generation = answer.member_id, answer.generation_id
        return answer

    def sync(self, *members: StageMember) -> None:
        """Ask for the assignment; a leader gives each member its number."""
        request = SyncGroupRequest("g", self.generation, self.member_id, None, "consumer", self.party.protocol)
        request.assignments = [SyncGroupRequestAssignment(m.member_id, b"%d" % m.number) for m in members]
        self.stage.send(request, 5, self.client)

    def sync_with(self, assignment: bytes) -> None:
        """A leader alone gives itself this."""
        request = SyncGroupRequest("g", self.generation, self.member_id, None, "consumer", self.party.protocol)
        request.assignments = [SyncGroupRequestAssignment(self.member_id, assignment)]
        self.stage.send(request, 5, self.client)

    def synced(self) -> Any:
        return self._one()

    def beat(self, instance: str | None = None) -> int:
        request = HeartbeatRequest("g", self.generation, self.member_id, instance)
        code: int = self.stage.ask(request, 4, self.client).error_code
        return code

    def leave(self) -> int:
        request = LeaveGroupRequest("g", members=[MemberIdentity(self.member_id)])
        code: int = self.stage.ask(request, 5, self.client).members[0].error_code
        return code

    def commit(self, offset: int, instance: str | None = None) -> int:
        """Commit the position in partition 0 of the party's topic."""
        request = OffsetCommitRequest("g", self.generation, self.member_id, instance)
        request.topics = [OffsetCommitRequestTopic("rain", partitions=[OffsetCommitRequestPartition(0, offset)])]
        code: int = self.stage.ask(request, 9, self.client).topics[0].partitions[0].error_code
        return code


class Party:
    """A node with a topic, and members that have not joined yet."""

    protocol = "range"

    def __init__(
        self,
        count: int,
        *,
        session_ms: int = 30_000,
        rebalance_ms: int = 60_000,
        partitions: int = 1,
        **settings: Any,
    ) -> None:
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self._settings = settings
        self.stage = Stage(**settings)
        self.stage.topic(partitions=partitions)
        self.members = [StageMember(self, number) for number in range(count)]
        for member in self.members[1:]:
            self.stage.connect(member.client)

    def __iter__(self) -> Iterator[StageMember]:
        return iter(self.members)

    def restart(self) -> None:
        """A new process on the same disk; everybody connects again."""
        before = self.stage
        self.stage = Stage(before.disk, **self._settings)
        self.stage.now_ms = before.now_ms
        for member in self.members[1:]:
            self.stage.connect(member.client)

    def join(self, *members: StageMember, instances: tuple[str | None, ...] = ()) -> None:
        """All of these join, and the generation begins."""
        for member, instance in zip(members, instances or [None] * len(members), strict=True):
            member.join(instance=instance)
        self.stage.wait(self.stage.config.group_initial_delay_ms * 3)
        self.join_done(*members)

    @staticmethod
    def join_done(*members: StageMember) -> None:
        assert [member.joined().error_code for member in members] == [0] * len(members)

    def hand_out(self, *members: StageMember) -> None:
        """The first of them leads."""
        for member in reversed(members):
            member.sync(*(members if member is members[0] else ()))
        self.stage.end_syncs()
        assert [member.synced().error_code for member in members] == [0] * len(members)

    def form(self, *members: StageMember, instances: tuple[str | None, ...] = ()) -> None:
        """These are the stable members of a generation; the first leads."""
        self.join(*members, instances=instances)
        self.hand_out(*members)

"""A simulated member of a group: joins, reads its place, commits, and sometimes freezes, dies or leaves."""

from __future__ import annotations

import json
from enum import Enum
from typing import cast

from penstock.errors import ErrorCode
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.kafka.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from penstock.kafka.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from penstock.kafka.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from penstock.kafka.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from penstock.kafka.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from proof.sim.client_context import Scene
from proof.sim.network import Asked, Link
from proof.sim.promises import Place

PROTOCOL_TYPE, PROTOCOL = "sim", "chance"
LONG_SESSION_MS = 30_000  # whoever is gone is missed for longer than the others wait for it
_BY_ID = 10


class Stand(Enum):
    OUT = "out"
    JOINED = "joined"
    IN = "in"


class Member:
    """One request in flight at a time; a position it commits is never below what it was told was committed."""

    commits_since = 7  # the version of OffsetCommit that it needs

    def __init__(self, scene: Scene, name: str, group: str, *, is_static: bool) -> None:
        self.scene = scene
        self.name = name
        self.group = group
        self.instance = name if is_static else None
        self.link: Link | None = None
        self.stand = Stand.OUT
        self.member_id = ""
        self.generation = -1
        self.session_ms = scene.chance.choice((500, 5_000, LONG_SESSION_MS))
        self.rebalance_ms = scene.chance.choice((500, 3_000))
        self._others: list[str] = []  # told to a leader
        self._positions: dict[Place, int | None] = {}
        self._tool_offset = 0
        self._frozen = 0

    @property
    def is_settled(self) -> bool:
        return self.stand is Stand.IN

    def act(self) -> None:
        chance = self.scene.chance
        if self._frozen > 0 and not self.scene.is_calm:
            self._frozen -= 1
            return
        if self.link is None or not self.link.is_open:
            self.link = self.scene.connect(self)
        if self.link is None or self.link.in_flight:
            return
        luck = 1.0 if self.scene.is_calm else chance.random()
        if luck < 0.03:
            self._frozen = chance.randint(5, 60)
        elif luck < 0.05:
            self._start_over(keep_id=False)
        elif luck < 0.1:
            self._commit_as_tool(self.link)
        elif self.stand is Stand.OUT:
            self._join(self.link)
        elif self.stand is Stand.JOINED:
            self._sync(self.link)
        elif luck < 0.15:
            self._leave(self.link)
        else:
            self._work(self.link)

    def _start_over(self, *, keep_id: bool) -> None:
        self.stand = Stand.OUT
        self.generation = -1
        self._positions.clear()
        if not keep_id:
            self.member_id = ""

    # Requests.

    def _join(self, link: Link) -> None:
        # In version 0 the others wait for as long as its session may be silent.
        oldest = 1 if self.session_ms == LONG_SESSION_MS else 0
        version = self.scene.version(ApiKey.JOIN_GROUP, 5 if self.instance else oldest)
        request = JoinGroupRequest(self.group, self.session_ms, member_id=self.member_id, protocol_type=PROTOCOL_TYPE)
        request.protocols = [JoinGroupRequestProtocol(PROTOCOL, self.name.encode())]
        if version >= 1:
            request.rebalance_timeout_ms = self.rebalance_ms
        if version >= 5:
            request.group_instance_id = self.instance
        link.ask(ApiKey.JOIN_GROUP, request, version)

    def _sync(self, link: Link) -> None:
        version = self.scene.version(ApiKey.SYNC_GROUP, 3)
        request = SyncGroupRequest(self.group, self.generation, self.member_id, self.instance)
        if version >= 5:
            request.protocol_type, request.protocol_name = PROTOCOL_TYPE, PROTOCOL
        given: dict[str, list[tuple[str, int]]] = {member_id: [] for member_id in self._others}
        if given:
            for topic in self.scene.ledger.live():
                for index in range(topic.partitions):
                    given[self.scene.chance.choice(self._others)].append((topic.name, index))
        request.assignments = [
            SyncGroupRequestAssignment(member_id, json.dumps(places).encode()) for member_id, places in given.items()
        ]
        link.ask(ApiKey.SYNC_GROUP, request, version, self.generation)

    def _leave(self, link: Link) -> None:
        request = LeaveGroupRequest(self.group, members=[MemberIdentity(self.member_id, self.instance)])
        link.ask(ApiKey.LEAVE_GROUP, request, self.scene.version(ApiKey.LEAVE_GROUP, 3))
        self._start_over(keep_id=False)

    def _work(self, link: Link) -> None:
        live = {topic.name for topic in self.scene.ledger.live()}
        mine = [place for place in self._positions if place.topic in live]
        unknown = [place for place in mine if self._positions[place] is None]
        if unknown:
            self._ask_positions(link, unknown)
        elif mine and self.scene.chance.random() < 0.6 and not self.scene.is_calm:
            some = self.scene.chance.sample(mine, k=self.scene.chance.randint(1, min(4, len(mine))))
            offsets = {place: (self._positions[place] or 0) + self.scene.chance.randint(0, 5) for place in some}
            # An answer may get lost: from now on nothing lower is committed.
            self._positions.update(offsets)
            self._commit(link, self.group, offsets, self.generation)
        else:
            request = HeartbeatRequest(self.group, self.generation, self.member_id, self.instance)
            link.ask(ApiKey.HEARTBEAT, request, self.scene.version(ApiKey.HEARTBEAT, 3))

    def _ask_positions(self, link: Link, places: list[Place]) -> None:
        version = self.scene.version(ApiKey.OFFSET_FETCH)
        topics = self.scene.ledger.topics
        if version < 8:
            request = OffsetFetchRequest(self.group, [OffsetFetchRequestTopic(p.topic, [p.number]) for p in places])
        else:
            wanted = [OffsetFetchRequestTopics(p.topic, topics[p.topic].topic_id, [p.number]) for p in places]
            request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(self.group, topics=wanted)])
        link.ask(ApiKey.OFFSET_FETCH, request, version, (self.generation, places))

    def _commit(self, link: Link, group: str, offsets: dict[Place, int], generation: int) -> None:
        version = self.scene.version(ApiKey.OFFSET_COMMIT, self.commits_since)
        request = OffsetCommitRequest(group, generation)
        if generation >= 0:
            request.member_id, request.group_instance_id = self.member_id, self.instance
        request.topics = [
            OffsetCommitRequestTopic(
                place.topic,
                self.scene.ledger.topics[place.topic].topic_id,
                [OffsetCommitRequestPartition(place.number, offset)],
            )
            for place, offset in offsets.items()
        ]
        link.ask(ApiKey.OFFSET_COMMIT, request, version, offsets)

    def _commit_as_tool(self, link: Link) -> None:
        """A group in which nobody joins, and only this client commits."""
        live = self.scene.ledger.live()
        if live:
            self._tool_offset += 1
            place = Place(live[0].name, 0)
            self._commit(link, f"{self.name}-tool", {place: self._tool_offset}, -1)

    # Answers.

    def on_reply(self, asked: Asked, response: Message) -> None:
        match response:
            case JoinGroupResponse():
                self._on_joined(response)
            case SyncGroupResponse():
                if self._is_told_well(response.error_code) and asked.tag == self.generation:
                    places = json.loads(bytes(response.assignment) or b"[]")
                    self._positions = {Place(name, index): None for name, index in places}
                    self.stand = Stand.IN
            case HeartbeatResponse():
                self._is_told_well(response.error_code)
            case OffsetFetchResponse():
                self._on_positions(asked, response)
            case OffsetCommitResponse():
                self._on_committed(asked, response)
            case LeaveGroupResponse():
                pass

    def _on_joined(self, response: JoinGroupResponse) -> None:
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif self._is_told_well(response.error_code):
            self.member_id, self.generation = response.member_id, response.generation_id
            is_leader = response.leader == response.member_id and not response.skip_assignment
            self._others = [member.member_id for member in response.members] if is_leader else []
            self.stand = Stand.JOINED

    def _on_positions(self, asked: Asked, response: OffsetFetchResponse) -> None:
        generation, places = cast("tuple[int, list[Place]]", asked.tag)
        if generation != self.generation:
            return
        old = [(p.error_code, p.committed_offset) for topic in response.topics for p in topic.partitions]
        topics = [topic for group in response.groups for topic in group.topics]
        new = [(p.error_code, p.committed_offset) for topic in topics for p in topic.partitions]
        for place, (code, offset) in zip(places, [*old, *new], strict=True):
            if not code and place in self._positions:
                self._positions[place] = max(offset, 0)

    def _on_committed(self, asked: Asked, response: OffsetCommitResponse) -> None:
        request = asked.request
        if not isinstance(request, OffsetCommitRequest) or request.generation_id_or_member_epoch != self.generation:
            return
        for topic in response.topics:
            code = topic.partitions[0].error_code
            if code not in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
                self._is_told_well(code)

    def _is_told_well(self, code: int) -> bool:
        """Whether all is fine; else go back as far as Kafka's clients do."""
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
            self._start_over(keep_id=False)
        elif code in (ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS):
            self._start_over(keep_id=True)
        return not code

    def on_broken(self, unanswered: list[Asked]) -> None:
        self.link = None

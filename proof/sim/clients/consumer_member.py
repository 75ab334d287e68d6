"""A simulated member of the newer group protocol: one heartbeat says and tells everything."""

from __future__ import annotations

from typing import cast

from penstock.errors import ErrorCode
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from proof.sim.client_context import Scene
from proof.sim.clients.member import Member, Stand
from proof.sim.network import Asked, Link
from proof.sim.promises import Place

_BEGUN_ANEW = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.FENCED_INSTANCE_ID)
_LEAVING, _RETURNING = -1, -2


class NewerMember(Member):
    """Gives back what it is not told to have with its next heartbeat; reads its place anew in what it is given."""

    commits_since = 9

    def __init__(self, scene: Scene, name: str, group: str, *, is_static: bool) -> None:
        super().__init__(scene, name, group, is_static=is_static)
        self._lives = 0
        self._changed = True  # it has something to say in full

    def _start_over(self, *, keep_id: bool) -> None:
        super()._start_over(keep_id=keep_id)
        self._changed = True

    def _join(self, link: Link) -> None:
        if not self.member_id:
            self._lives += 1
            self.member_id = f"{self.name}-{self._lives}"
        self._beat(link, 0)

    def _leave(self, link: Link) -> None:
        self._beat(link, _RETURNING if self.instance is not None and self.scene.chance.random() < 0.5 else _LEAVING)
        self._start_over(keep_id=False)

    def _work(self, link: Link) -> None:
        luck = self.scene.chance.random()
        if luck < 0.5 or self.scene.is_calm:
            self._beat(link, self.generation)
        else:
            super()._work(link)

    def _beat(self, link: Link, epoch: int) -> None:
        chance = self.scene.chance
        request = ConsumerGroupHeartbeatRequest(self.group, self.member_id, epoch, self.instance)
        version = self.scene.version(ApiKey.CONSUMER_GROUP_HEARTBEAT)
        if epoch == 0 or (epoch > 0 and (self._changed or chance.random() < 0.3)):
            request.rebalance_timeout_ms = self.rebalance_ms
            request.subscribed_topic_names = [
                f"t{number}" for number in range(8) if number % 3 or chance.random() < 0.9
            ]
            if version >= 1 and chance.random() < 0.3:
                request.subscribed_topic_names, request.subscribed_topic_regex = [], "t[0-9]+"
            request.server_assignor = chance.choice((None, "uniform", "range"))
        owned: dict[str, list[int]] = {}
        for place in self._positions:
            owned.setdefault(place.topic, []).append(place.number)
        topics = self.scene.ledger.topics
        request.topic_partitions = [TopicPartitions(topics[name].topic_id, parts) for name, parts in owned.items()]
        if epoch == 0:
            request.topic_partitions = []
        link.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, request, version, (self.member_id, epoch))

    def on_reply(self, asked: Asked, response: Message) -> None:
        if not isinstance(response, ConsumerGroupHeartbeatResponse):
            super().on_reply(asked, response)
            return
        member_id, epoch = cast("tuple[str, int]", asked.tag)
        if member_id != self.member_id or epoch < 0:
            return
        if response.error_code in _BEGUN_ANEW:
            self._start_over(keep_id=False)
        elif not response.error_code:
            self.generation = response.member_epoch
            self.stand = Stand.IN
            self._changed = False
            if response.assignment is not None:
                self._take(response.assignment.topic_partitions)

    def _take(self, given: list[TopicPartitions]) -> None:
        names = {topic.topic_id: topic.name for topic in self.scene.ledger.topics.values()}
        # Of a topic that is being made its maker may not have heard yet.
        known = [each for each in given if each.topic_id in names]
        places = [Place(names[each.topic_id], index) for each in known for index in each.partitions]
        self._positions = {place: self._positions.get(place) for place in places}

    def _is_told_well(self, code: int) -> bool:
        if code == ErrorCode.STALE_MEMBER_EPOCH:
            return False  # the next heartbeat tells the right one
        return super()._is_told_well(code)

"""A simulated administrator: creates, changes and deletes topics and records, and looks around."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from penstock.errors import ErrorCode
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.kafka.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from penstock.kafka.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from penstock.kafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.kafka.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.kafka.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from proof.sim.client_context import Scene
from proof.sim.network import Asked, Link
from proof.sim.promises import SimTopic

TOPICS_MAX = 3
SEGMENT_BYTES = (600, 2_000, 10_000)
LATEST, LATEST_TIME = -1, -3


class Admin:
    """One request at a time, so that it knows what should be true; `told` hears of every new topic."""

    def __init__(self, scene: Scene, told: Callable[[SimTopic], None]) -> None:
        self.scene = scene
        self.name = "admin"
        self.link: Link | None = None
        self._told = told
        self._count = 0
        self._creating: SimTopic | None = None
        self._configs: dict[str, str] = {}

    def act(self) -> None:
        if self.link is None or not self.link.is_open:
            self.link = self.scene.connect(self)
        if self.link is None or self.link.in_flight:
            return
        chance = self.scene.chance
        live = self.scene.ledger.live()
        if self._creating is not None or (not live and not self.scene.is_calm):
            self._create(self.link)
        elif not self.scene.is_calm:
            luck = chance.random()
            if luck < 0.25 and len(live) < TOPICS_MAX:
                self._create(self.link)
            elif luck < 0.55:
                self._look(self.link, chance.choice(live))
            elif luck < 0.7:
                self._alter(self.link, chance.choice(live))
            elif luck < 0.9:
                self._delete_records(self.link, chance.choice(live))
            elif len(live) > 1:
                self._delete(self.link, chance.choice(live))

    def _create(self, link: Link) -> None:
        chance = self.scene.chance
        if self._creating is None:
            self._count += 1
            self._configs = {"segment.bytes": str(chance.choice(SEGMENT_BYTES))}
            if chance.random() < 0.2:
                self._configs["penstock.durability"] = "memory"
            if chance.random() < 0.2:
                self._configs["message.timestamp.type"] = "LogAppendTime"
            if chance.random() < 0.2:
                self._configs["retention.ms"] = "60000"
            if chance.random() < 0.2:
                self._configs["retention.bytes"] = "3000"
            self._creating = _topic(f"t{self._count}", chance.randint(1, 2), self._configs)
        wanted = CreatableTopic(
            self._creating.name,
            self._creating.partitions,
            1,
            configs=[CreatableTopicConfig(name, value) for name, value in self._configs.items()],
        )
        link.ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest([wanted]), 7)

    def _look(self, link: Link, topic: SimTopic) -> None:
        chance = self.scene.chance
        when = chance.choice((LATEST, LATEST_TIME, -2, self.scene.now_ms - chance.randrange(5000)))
        parts = [ListOffsetsPartition(index, -1, when) for index in range(topic.partitions)]
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(topic.name, parts)])
        link.ask(ApiKey.LIST_OFFSETS, request, self.scene.version(ApiKey.LIST_OFFSETS, 7))

    def _alter(self, link: Link, topic: SimTopic) -> None:
        chance = self.scene.chance
        name, value = chance.choice(
            (
                ("segment.bytes", str(chance.choice(SEGMENT_BYTES))),
                ("segment.ms", str(chance.choice((1000, 100_000)))),
                ("retention.ms", "60000"),
                ("retention.bytes", "3000"),
            )
        )
        if name == "retention.ms":
            topic.retention_ms = int(value)
        if name == "retention.bytes":
            topic.retention_bytes = int(value)
        resource = AlterConfigsResource(2, topic.name, [AlterableConfig(name, 0, value)])
        request = IncrementalAlterConfigsRequest([resource])
        link.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, self.scene.version(ApiKey.INCREMENTAL_ALTER_CONFIGS))

    def _delete_records(self, link: Link, topic: SimTopic) -> None:
        index = self.scene.chance.randrange(topic.partitions)
        account = self.scene.ledger.account(topic, index)
        if account.end == 0:
            return
        offset = self.scene.chance.randrange(account.end + 1)
        account.delete_below = max(account.delete_below, offset)
        wanted = DeleteRecordsTopic(topic.name, [DeleteRecordsPartition(index, offset)])
        request = DeleteRecordsRequest([wanted], 1000)
        link.ask(ApiKey.DELETE_RECORDS, request, self.scene.version(ApiKey.DELETE_RECORDS))

    def _delete(self, link: Link, topic: SimTopic) -> None:
        topic.is_going = True
        version = self.scene.version(ApiKey.DELETE_TOPICS)
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=topic.name)] if version >= 6 else [],
            topic_names=[topic.name] if version < 6 else [],
        )
        link.ask(ApiKey.DELETE_TOPICS, request, version, topic)

    # Answers.

    def on_reply(self, asked: Asked, response: Message) -> None:
        if isinstance(response, CreateTopicsResponse):
            self._on_created(response)
        elif isinstance(response, MetadataResponse):
            self._on_metadata(response)
        elif isinstance(response, DeleteTopicsResponse) and isinstance(asked.tag, SimTopic):
            asked.tag.is_gone = not response.responses[0].error_code

    def _on_created(self, response: CreateTopicsResponse) -> None:
        result = response.topics[0]
        if self._creating is None or self.link is None:
            return
        if result.error_code == ErrorCode.NONE:
            self._creating.topic_id = result.topic_id
            self._told(self._creating)
            self._creating = None
        elif result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
            # An earlier try was made true although its answer was lost.
            request = MetadataRequest([MetadataRequestTopic(name=self._creating.name)], False)
            self.link.ask(ApiKey.METADATA, request, self.scene.version(ApiKey.METADATA, 10))

    def _on_metadata(self, response: MetadataResponse) -> None:
        found = response.topics[0]
        if self._creating is not None and not found.error_code:
            self._creating.topic_id = found.topic_id
            self._told(self._creating)
            self._creating = None

    def on_broken(self, unanswered: list[Asked]) -> None:
        self.link = None


def _topic(name: str, partitions: int, configs: dict[str, str]) -> SimTopic:
    return SimTopic(
        name,
        UUID(int=0),
        partitions,
        in_memory=configs.get("penstock.durability") == "memory",
        retention_ms=int(configs.get("retention.ms", "-1")),
        retention_bytes=int(configs.get("retention.bytes", "-1")),
    )

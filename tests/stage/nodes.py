"""A whole node on a simulated disk, asked as a client asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from penstock.config.broker import BrokerConfig
from penstock.kafka.records.opening import large_refusal
from penstock.kafka.wire.apis import APIS
from penstock.kafka.wire.header import decode_response_header, encode_request_header
from penstock.kafka.wire.message import Message, decode, encode
from penstock.kafka.wire.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from penstock.kafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from penstock.kafka.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from penstock.kafka.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from penstock.ports import Buffer
from penstock.queue.core.events import (
    Close,
    Connected,
    Disconnected,
    Drained,
    Effect,
    Event,
    Load,
    Loaded,
    Note,
    Open,
    Opened,
    Pause,
    Received,
    Reply,
    Resume,
    Sync,
    Synced,
)
from penstock.queue.node import Node
from proof.sim.disk import FakeDisk
from stage.batches import NOW_MS, batch

E = TypeVar("E")
KEYS = {api.request: api.key for api in APIS.values()}


class Stage:
    """A node, its disk, its clients and its time; syncs end only when a test says so."""

    def __init__(self, disk: FakeDisk | None = None, **settings: Any) -> None:
        self.disk = disk or FakeDisk(Random(7))
        self.now_ms = NOW_MS
        self.config = BrokerConfig(**settings)
        ids = count(Random(len(self.disk.root.names)).getrandbits(64))
        self.node = Node(self.disk, self.config, ("127.0.0.1", 9092), lambda: UUID(int=next(ids)), NOW_MS)
        self.effects: list[Effect] = []
        self.syncs: list[Sync] = []
        self.replies: dict[int, bytearray] = {}
        self._asked: dict[int, tuple[int, int]] = {}
        self._correlation = 0
        self.connect(1)

    # Events in.

    def step(self, *events: Event) -> list[Effect]:
        effects = self.node.step(events, self.now_ms)
        for effect in effects:
            if isinstance(effect, Sync):
                self.syncs.append(effect)
            elif isinstance(effect, Reply):
                self.replies[effect.connection] += b"".join(effect.chunks)
        self.effects += effects
        return effects

    def connect(self, number: int) -> int:
        self.step(Connected(number, f"client-{number}"))
        self.replies[number] = bytearray()
        return number

    def drop(self, number: int) -> None:
        self.step(Disconnected(number))

    def drained(self, number: int) -> None:
        self.step(Drained(number))

    def wait(self, ms: int) -> None:
        """Let time pass, stepping whenever the node wants to be woken."""
        until = self.now_ms + ms
        while (deadline := self.node.next_deadline_ms) <= until:
            self.now_ms = max(self.now_ms, deadline)
            self.step()
        self.now_ms = until

    def frame(self, request: Message, version: int) -> bytes:
        """A request as it comes from a socket, without its length."""
        self._correlation += 1
        key = KEYS[type(request)]
        self._asked[self._correlation] = (key, version)
        return encode_request_header(key, version, self._correlation, "stage") + encode(request, version)

    def send(self, request: Message, version: int | None = None, client: int = 1) -> int:
        version = APIS[KEYS[type(request)]].max_version if version is None else version
        frame = self.frame(request, version)
        correlation = self._correlation
        self.step(Received(client, memoryview(bytearray(frame))))
        return correlation

    def send_raw(self, frame: bytes, client: int = 1) -> None:
        self.step(Received(client, memoryview(bytearray(frame))))

    def end_syncs(self, error: str | None = None) -> None:
        """End the syncs under way and those that follow from them, as the disk says; or only these, with `error`."""
        while self.syncs:
            self.end_first_syncs(error)
            if error is not None:
                return

    def end_first_syncs(self, error: str | None = None) -> None:
        """End the syncs under way; those that follow from them go on."""
        ending, self.syncs = self.syncs, []
        self.step(*[Synced(sync.job, error or self.run(sync)) for sync in ending])

    def run(self, sync: Sync) -> str | None:
        """Do what a sync asks of the disk, and say what went wrong."""
        try:
            for file in sync.files:
                file.sync()
            for folder in sync.folders:
                self.disk.sync_folder(folder)
        except OSError as error:
            return str(error)
        return None

    def end_opening(self, job: Open) -> None:
        """The batches of a job are checked."""
        limit = self.config.opened_bytes_max
        self.step(Opened(job.job, [large_refusal(batch, limit, lambda: None) for batch in job.batches]))

    def end_load(self, load: Load) -> None:
        """What a load asked for is in memory now."""
        for part in load.parts:
            self.disk.pages.bring(self.disk.inode(part.file.path), part.position, part.length)
        self.step(Loaded(load.job))

    # Answers out.

    def answers(self, client: int = 1) -> list[tuple[int, Any]]:
        """What was replied since the last call: (correlation id, message) in order."""
        raw, self.replies[client] = self.replies[client], bytearray()
        return list(self._messages(raw))

    def _messages(self, raw: bytearray) -> Iterator[tuple[int, Message]]:
        at = 0
        while at < len(raw):
            size = int.from_bytes(raw[at : at + 4], "big")
            body = bytes(raw[at + 4 : at + 4 + size])
            key, version = self._asked[int.from_bytes(body[:4], "big")]
            correlation, start = decode_response_header(body, key, version)
            yield correlation, decode(APIS[key].response, body, version, start)
            at += 4 + size

    def ask(self, request: Message, version: int | None = None, client: int = 1) -> Any:
        """Send a request, let every sync end well, and give the one answer."""
        self.send(request, version, client)
        self.end_syncs()
        ((_, message),) = self.answers(client)
        return message

    def seen(self, kind: type[E]) -> list[E]:
        """The effects of one kind so far."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    @property
    def closed(self) -> list[int]:
        return [close.connection for close in self.seen(Close)]

    @property
    def notes(self) -> list[str]:
        return [note.event for note in self.seen(Note)]

    @property
    def pauses(self) -> list[int]:
        return [pause.connection for pause in self.seen(Pause)]

    @property
    def resumes(self) -> list[int]:
        return [resume.connection for resume in self.seen(Resume)]

    # What tests say most.

    def topic(self, name: str = "rain", partitions: int = 1, **config: str) -> UUID:
        """Create a topic; settings are written with underscores for dots."""
        configs = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in config.items()]
        request = CreateTopicsRequest([CreatableTopic(name, partitions, 1, [], configs)])
        (result,) = self.ask(request).topics
        assert result.error_code == 0, result
        topic_id: UUID = result.topic_id
        return topic_id

    def configure(self, name: str, changes: Mapping[str, str]) -> None:
        """Change settings of a topic."""
        configs = [AlterableConfig(key, value=value) for key, value in changes.items()]
        (result,) = self.ask(IncrementalAlterConfigsRequest([AlterConfigsResource(2, name, configs)])).responses
        assert result.error_code == 0, result

    def produce(self, *batches: Buffer, topic: str = "rain", partition: int = 0, **options: Any) -> ProduceResponse:
        """Produce batches, each in a request of its own, wait for the disk, and give the last answer."""
        answer = ProduceResponse()
        for one in batches or (batch(),):
            answer = self.ask(produce_request(one, topic, partition), **{"version": 12, **options})
        return answer

    def fetch(
        self, offset: int, topic: str = "rain", partition: int = 0, client: int = 1, **options: int
    ) -> FetchResponse:
        answer: FetchResponse = self.ask(fetch_request(offset, topic, partition, **options), 12, client)
        return answer


def produce_request(data: Buffer | None, topic: str = "rain", partition: int = 0, acks: int = -1) -> ProduceRequest:
    return ProduceRequest(
        None, acks, 1000, [TopicProduceData(topic, partition_data=[PartitionProduceData(partition, data)])]
    )


def fetch_request(
    offset: int,
    topic: str = "rain",
    partition: int = 0,
    *,
    wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_bytes: int = 1 << 20,
) -> FetchRequest:
    wanted = FetchPartition(partition, fetch_offset=offset, partition_max_bytes=partition_bytes)
    return FetchRequest(
        max_wait_ms=wait_ms, min_bytes=min_bytes, max_bytes=max_bytes, topics=[FetchTopic(topic, partitions=[wanted])]
    )


def ack_of(response: ProduceResponse) -> PartitionProduceResponse:
    """The answer for the one batch of a request."""
    return response.responses[0].partition_responses[0]


def records_of(response: FetchResponse) -> bytes:
    return bytes(response.responses[0].partitions[0].records or b"")

"""A simulated reader of old records: it asks for several stretches at once, wherever there ever was something."""

from __future__ import annotations

from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from penstock.kafka.wire.messages.metadata import MetadataRequest
from proof.sim.client_context import Scene
from proof.sim.network import Asked, Link

IN_FLIGHT_MAX = 6


class Rereader:
    """Remembers nothing of what it is told; every answer is judged when it is given."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.scene = scene
        self.name = name
        self.link: Link | None = None

    @property
    def is_done(self) -> bool:
        return self.link is None or not self.link.in_flight

    def act(self) -> None:
        if self.link is None or not self.link.is_open:
            self.link = self.scene.connect(self)
        if self.link is None or self.link.in_flight >= IN_FLIGHT_MAX or self.scene.is_calm:
            return
        accounts = [a for a in self.scene.ledger.accounts.values() if a.end and not a.topic.is_gone]
        if not accounts:
            return
        chance = self.scene.chance
        if chance.random() < 0.1:
            # Its answer is held back by a fetch that waits.
            self.link.ask(ApiKey.METADATA, MetadataRequest(None, False), self.scene.version(ApiKey.METADATA, 4))
            return
        topics = [
            FetchTopic(
                account.topic.name,
                account.topic.topic_id,
                [
                    FetchPartition(
                        account.index,
                        fetch_offset=chance.randrange(account.end),
                        partition_max_bytes=chance.choice((1, 400, 3000)),
                    )
                ],
            )
            for account in chance.sample(accounts, k=min(len(accounts), chance.randint(1, 3)))
        ]
        request = FetchRequest(
            max_wait_ms=chance.choice((0, 20, 500)),
            min_bytes=chance.choice((0, 1, 500, 5000)),
            max_bytes=chance.choice((300, 3000, 1_000_000)),
            topics=topics,
            isolation_level=chance.choice((0, 1)),
        )
        self.link.ask(ApiKey.FETCH, request, self.scene.version(ApiKey.FETCH))

    def on_reply(self, asked: Asked, response: Message) -> None:
        """What it is told has been judged."""

    def on_broken(self, unanswered: list[Asked]) -> None:
        self.link = None

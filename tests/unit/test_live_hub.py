"""What the hub asks the queue for its streams."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, cast

from penstock.client.offsets import NoSuchTopicError
from penstock.config.edge import EdgeConfig
from penstock.connectors.live.hub import Hub
from penstock.connectors.live.position_token import Place
from penstock.connectors.live.recent import Recent
from penstock.connectors.live.stream import Stream, TopicState
from penstock.kafka.target import KafkaTarget

NOWHERE = "127.0.0.1:1"
END = 7


class OffsetsWithoutTopic:
    """The queue's offsets; the topic `gone` was deleted."""

    async def at(self, where: str | int, places: Iterable[Place]) -> dict[Place, int]:
        asked = list(places)
        if any(topic == "gone" for topic, _ in asked):
            raise NoSuchTopicError("the queue has no topic gone")
        return dict.fromkeys(asked, END)


def test_a_deleted_topic_does_not_end_the_other_topics_of_a_stream() -> None:
    """With `until=TIME`, the records of the other topics before that time are still to be given."""
    stream = Stream([TopicState(topic, True, Recent({0: 0, 1: 0}, 10, 1000)) for topic in ("a", "gone", "z")])

    async def ends() -> dict[Place, int]:
        hub = Hub({}, EdgeConfig(), cast(Any, None), KafkaTarget.parse(NOWHERE))
        hub._offsets = cast(Any, OffsetsWithoutTopic())
        found = await hub.ends_at(1_000, stream)
        await hub.close()
        return found

    assert asyncio.run(ends()) == {("a", 0): END, ("a", 1): END, ("z", 0): END, ("z", 1): END}

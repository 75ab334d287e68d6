"""An operator in the storm: topics come and go, settings change, groups are looked at."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exported without types
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from penstock.drills.recording_clients import PATIENT
from proof.storm.roles import COPIES, RECORDS, Task

ANSWER_S = 20.0


class Administrator:
    """What it was told is true must be true when it asks: else it says so, as a trouble."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._client: Any = AdminClient({"bootstrap.servers": task.address, "client.id": task.name, **PATIENT})
        self._made = 0
        self._mine: dict[str, int] = {}

    def turn(self) -> None:
        deeds: list[Callable[[], None]] = [self._create, self._alter, self._look_at_groups]
        if self._mine:
            deeds += [self._delete, self._describe]
        # No answer in time, or one that says no: nothing was promised.
        with suppress(KafkaException, TimeoutError):
            self._task.chance.choice(deeds)()
        self._client.poll(self._task.chance.uniform(0.1, 0.5))

    def finish(self) -> None:
        """Its topics may stay."""

    def _create(self) -> None:
        name, partitions = f"{self._task.process}-{self._made}", self._task.chance.randrange(1, 4)
        self._made += 1
        self._client.create_topics([NewTopic(name, partitions, 1)])[name].result(ANSWER_S)
        self._mine[name] = partitions

    def _describe(self) -> None:
        name = self._task.chance.choice(sorted(self._mine))
        found = self._client.list_topics(timeout=ANSWER_S).topics.get(name)
        if found is None or len(found.partitions) != self._mine[name]:
            sys.stderr.write(f"trouble: topic {name} was created with {self._mine[name]} partitions: {found}\n")

    def _delete(self) -> None:
        name = self._task.chance.choice(sorted(self._mine))
        # From here on it may be gone, whatever the answer is.
        del self._mine[name]
        try:
            self._client.delete_topics([name])[name].result(ANSWER_S)
        except KafkaException as refused:
            if refused.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return
        if name in self._client.list_topics(timeout=ANSWER_S).topics:
            sys.stderr.write(f"trouble: topic {name} was deleted and is still there\n")

    def _alter(self) -> None:
        topic, size = self._task.chance.choice((RECORDS, COPIES)), self._task.chance.choice((1, 2, 4)) * 1024 * 1024
        entry = ConfigEntry("segment.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        self._client.incremental_alter_configs([resource])[resource].result(ANSWER_S)
        asked = ConfigResource(ResourceType.TOPIC, topic)
        found = self._client.describe_configs([asked])[asked].result(ANSWER_S)["segment.bytes"].value
        if int(found) != size:
            sys.stderr.write(f"trouble: segment.bytes of {topic} was set to {size} and is {found}\n")

    def _look_at_groups(self) -> None:
        groups = self._client.list_consumer_groups().result(ANSWER_S).valid
        for group in groups[:3]:
            self._client.describe_consumer_groups([group.group_id])[group.group_id].result(ANSWER_S)

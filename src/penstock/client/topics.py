"""Makes the topics of a plan, compares those that exist with it, and refuses what does not fit."""

from __future__ import annotations

import importlib
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from penstock.client.factory import admin_client
from penstock.client.topic_registry import REGISTRY_TOPIC, read_registry, registry_topic, write_registry
from penstock.errors import ConfigError, PenstockError
from penstock.guarantee import Queue
from penstock.kafka.target import KafkaTarget
from penstock.plan.topic_differences import Action, Difference, Existing, Made, compare, maker_of
from penstock.plan.topics import INTERNAL_PREFIX, Wanted

_KINDS: Any = importlib.import_module("confluent_kafka.admin")  # its re-exported names carry no types

ANSWER_TIMEOUT_S = 30.0
OUR_SETTING = "penstock.durability"  # only our own broker knows it


def look_at_queue(queue: KafkaTarget) -> Queue:
    """What the queue at these addresses is: ours or Kafka, and how many machines; PenstockError if it is away."""
    admin = admin_client(queue)
    try:
        brokers = admin.list_topics(timeout=ANSWER_TIMEOUT_S).brokers
    except KafkaException as error:
        raise PenstockError(f"no broker answers at {queue} ({error.args[0].str()}): look whether it runs") from None
    probe = _KINDS.NewTopic("penstock.probe", 1, config={OUR_SETTING: "disk"})
    (answer,) = admin.create_topics([probe], validate_only=True).values()
    try:
        answer.result(ANSWER_TIMEOUT_S)
    except KafkaException as error:
        _refuse_outage(error.args[0])
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            return Queue("kafka", len(brokers))
    return Queue("penstock", len(brokers))


@dataclass(frozen=True, slots=True)
class Provided:
    """What became of the topics of an app."""

    ids: Mapping[str, str]
    created: list[str]
    differences: list[Difference]  # none of them is refused


class TopicProvider:
    """Makes the topics of one app; `provide` may be called again after the queue did not answer."""

    def __init__(self, queue: KafkaTarget, wanted: Iterable[Wanted], app: str, adopt: Collection[str] = ()) -> None:
        """`adopt` names topics of others that become this app's."""
        self._queue = queue
        self._wanted = {topic.name: topic for topic in wanted}
        if any(not name.startswith(INTERNAL_PREFIX) for name in self._wanted):
            replicas = max(topic.replicas for topic in self._wanted.values())
            self._wanted[REGISTRY_TOPIC] = registry_topic(replicas)
        self._app = app
        self._adopt = set(adopt)
        self._admin = admin_client(queue)
        self._created: set[str] = set()
        self._unanswered: set[str] = set()  # perhaps created: the answer was lost

    def provide(self) -> Provided:
        """Create the topics that are missing, and change those of this app that differ; topics of others stay.

        ConfigError names every difference that the app cannot live with.
        """
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while time.monotonic() < deadline:
            there = describe_topics(self._admin, list(self._wanted))
            self._created |= self._unanswered & there.keys()
            made = read_registry(self._queue) if REGISTRY_TOPIC in there else {}
            for name in self._created & there.keys():
                made[name] = self._record(name, there[name], self._wanted[name].settings)
            differences = topic_differences(self._app, self._wanted.values(), there, made, self._adopt)
            _refuse([found.sentence for found in differences if found.action is Action.REFUSE])
            if missing := self._wanted.keys() - there.keys():
                self._create([topic for name, topic in self._wanted.items() if name in missing])
                continue
            faults = [line for name, future in _set(self._admin, differences) for line in _set_fault(name, future)]
            _refuse(faults)
            self._register(there, made, differences)
            created, self._created = sorted(self._created), set()
            return Provided({name: topic.topic_id for name, topic in there.items()}, created, differences)
        raise PenstockError("the queue does not list the topics that it created")

    def _create(self, topics: Sequence[Wanted]) -> None:
        new = [_KINDS.NewTopic(t.name, t.partitions, t.replicas, config=dict(t.settings)) for t in topics]
        self._unanswered |= {topic.name for topic in topics}
        faults = []
        for name, future in self._admin.create_topics(new, operation_timeout=ANSWER_TIMEOUT_S).items():
            if (refused := _refusal_of(future)) is None:
                self._created.add(name)
            elif refused.code() != KafkaError.TOPIC_ALREADY_EXISTS:  # else another client was quicker
                faults.append(f"topic {name} could not be made: {refused.str()}")
            self._unanswered.discard(name)
        _refuse(faults)

    def _register(self, there: Mapping[str, Existing], made: Mapping[str, Made], found: Sequence[Difference]) -> None:
        """Record which topics are this app's, and which of their settings Penstock set."""
        records = []
        for name, topic in there.items():
            if name.startswith(INTERNAL_PREFIX):
                continue
            before = made.get(name) if maker_of(name, topic, made.get(name)) == self._app else None
            if before is None and name not in self._adopt:
                continue
            changed = {d.setting: d.wanted for d in found if (d.topic, d.action) == (name, Action.SET)}
            settings = (before.settings if before else {}) | changed
            if before is None or name in self._created or before.settings != settings:
                records.append(self._record(name, topic, settings, adopted=name in self._adopt))
        if records:
            write_registry(self._queue, records)

    def _record(self, name: str, there: Existing, settings: Mapping[str, str], *, adopted: bool = False) -> Made:
        return Made(topic=name, topic_id=there.topic_id, app=self._app, settings=dict(settings), adopted=adopted)


def provide_topics(
    queue: KafkaTarget, wanted: Iterable[Wanted], app: str = "", adopt: Collection[str] = ()
) -> Provided:
    """Make the topics of an app; PenstockError if the queue does not answer."""
    return TopicProvider(queue, wanted, app, adopt).provide()


def inspect_topics(
    queue: KafkaTarget, wanted: Iterable[Wanted], app: str, adopt: Collection[str] = ()
) -> list[Difference]:
    """The differences between what the queue has and what the app wants; changes nothing."""
    topics = list(wanted)
    there = describe_topics(admin_client(queue), [*(topic.name for topic in topics), REGISTRY_TOPIC])
    made = read_registry(queue) if REGISTRY_TOPIC in there else {}
    return topic_differences(app, topics, there, made, adopt)


def copies_of(queue: KafkaTarget, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Copies and `min.insync.replicas` of the topics of these names that the queue has."""
    return {
        name: (topic.replicas, int(topic.settings.get("min.insync.replicas", "1")))
        for name, topic in describe_topics(admin_client(queue), names).items()
    }


def topic_differences(
    app: str,
    wanted: Iterable[Wanted],
    there: Mapping[str, Existing],
    made: Mapping[str, Made],
    adopt: Collection[str] = (),
) -> list[Difference]:
    """The differences of all topics that are there."""
    return [
        difference
        for topic in wanted
        if topic.name in there
        for difference in compare(app, topic, there[topic.name], made.get(topic.name), adopt=topic.name in adopt)
    ]


def describe_topics(admin: AdminClient, names: Sequence[str]) -> dict[str, Existing]:
    """The topics of these names that the queue has."""
    found = {}
    for name, future in admin.describe_topics(TopicCollection(list(names)), request_timeout=ANSWER_TIMEOUT_S).items():
        try:
            found[name] = future.result(ANSWER_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise PenstockError(f"the queue does not describe topic {name}: {error.args[0].str()}") from None
    settings = _settings_of(admin, list(found))
    return {
        name: Existing(
            topic_id=str(topic.topic_id),
            partitions=len(topic.partitions),
            replicas=min((len(partition.replicas) for partition in topic.partitions), default=0),
            settings=settings[name],
        )
        for name, topic in found.items()
        if name in settings
    }


def _settings_of(admin: AdminClient, names: Sequence[str]) -> dict[str, dict[str, str]]:
    resources = [_KINDS.ConfigResource(_KINDS.ResourceType.TOPIC, name) for name in names]
    answers = admin.describe_configs(resources, request_timeout=ANSWER_TIMEOUT_S) if names else {}
    found = {}
    for resource, future in answers.items():
        try:
            entries = future.result(ANSWER_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:  # deleted since it was described
                continue
            raise PenstockError(f"the queue does not describe topic {resource.name}: {error.args[0].str()}") from None
        found[resource.name] = {name: entry.value for name, entry in entries.items()}
    return found


def _set(admin: AdminClient, differences: Sequence[Difference]) -> Iterator[tuple[str, Any]]:
    wanted: dict[str, dict[str, str]] = {}
    for found in differences:
        if found.action is Action.SET:
            wanted.setdefault(found.topic, {})[found.setting] = found.wanted
    changes = []
    for name, settings in wanted.items():
        entries = [
            _KINDS.ConfigEntry(setting, value, incremental_operation=_KINDS.AlterConfigOpType.SET)
            for setting, value in settings.items()
        ]
        changes.append(_KINDS.ConfigResource(_KINDS.ResourceType.TOPIC, name, incremental_configs=entries))
    if changes:
        answers = admin.incremental_alter_configs(changes, request_timeout=ANSWER_TIMEOUT_S)
        yield from ((resource.name, future) for resource, future in answers.items())


def _set_fault(name: str, future: Any) -> list[str]:
    refused = _refusal_of(future)
    return [] if refused is None else [f"topic {name} could not be set: {refused.str()}"]


def _refusal_of(future: Any) -> KafkaError | None:
    """Why the queue refused what was asked; PenstockError if it is away."""
    try:
        future.result(ANSWER_TIMEOUT_S)
    except TimeoutError:
        raise PenstockError(f"the queue does not answer within {ANSWER_TIMEOUT_S:.0f} s") from None
    except KafkaException as error:
        refused: KafkaError = error.args[0]
        _refuse_outage(refused)
        return refused
    return None


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise ConfigError(*faults)


def _refuse_outage(fault: KafkaError) -> None:
    """A queue that is away says nothing about what was asked: PenstockError, and whoever asked tries again."""
    if fault.retriable() or fault.name().startswith("_"):
        raise PenstockError(f"the queue does not answer ({fault.str()})")

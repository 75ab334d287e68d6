"""Makes the topics of a plan, and refuses what is there and does not fit."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from penstock.errors import ConfigError, PenstockError
from penstock.event import QUERIES_TOPIC, batches_topic
from penstock.guarantee import UNITS_MS, Queue
from penstock.plan import Plan

_KINDS: Any = importlib.import_module("confluent_kafka.admin")  # its re-exported names carry no types

ANSWER_TIMEOUT_S = 30.0
# Only the last record counts, however long ago that was.
_BATCHES = {"retention.ms": "-1", "retention.bytes": str(16 * 2**20), "segment.bytes": str(4 * 2**20)}
OUR_SETTING = "penstock.durability"  # only our own broker knows it


@dataclass(frozen=True, slots=True)
class Wanted:
    """A topic as it must be."""

    name: str
    partitions: int
    replicas: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)


def wanted_topics(plan: Plan) -> Iterator[Wanted]:
    """Every topic that a plan needs: its own, the dead letters, and what the queries report."""
    for topic in plan.topics.values():
        yield Wanted(topic.name, topic.partitions, topic.replicas, topic.queue_settings)
    for name, source in plan.dead_topics.items():
        yield Wanted(name, 1, source.replicas, source.queue_settings)
    for query in plan.queries.values():
        if query.is_exactly_once:
            output = plan.topics[query.writes]
            yield Wanted(batches_topic(plan.app, query.name), 1, output.replicas, output.queue_settings | _BATCHES)
    replicas = max((topic.replicas for topic in plan.topics.values()), default=1)
    yield Wanted(QUERIES_TOPIC, 1, replicas, {"retention.ms": str(UNITS_MS["hour"])})


def admin_client(queue: str) -> AdminClient:
    """A client for topics and their settings; it tells nothing on its own."""
    settings: dict[str, Any] = {"bootstrap.servers": queue, "client.id": "penstock", "log_level": 0}
    return AdminClient(settings | {"error_cb": _ignore})


def look_at_queue(queue: str) -> Queue:
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


def provide_topics(queue: str, wanted: list[Wanted]) -> list[str]:
    """Create what is missing, and set the settings of what is there; the names of those created.

    ConfigError names each topic that is there with another number of partitions: that decides where a key's events
    stand, so it is not changed in passing.
    """
    admin = admin_client(queue)
    there = _partitions(admin, [topic.name for topic in wanted])
    faults = [
        f"topic {topic.name} has {there[topic.name]} partitions in the queue and {topic.partitions} in the app: say "
        f"partitions={there[topic.name]}, or take a new name"
        for topic in wanted
        if topic.name in there and there[topic.name] != topic.partitions
    ]
    missing = [topic for topic in wanted if topic.name not in there]
    if faults:
        raise ConfigError(*faults)
    if missing:
        new = [_KINDS.NewTopic(t.name, t.partitions, t.replicas, config=dict(t.settings)) for t in missing]
        for name, future in admin.create_topics(new, operation_timeout=ANSWER_TIMEOUT_S).items():
            faults += _fault(f"topic {name} could not be made", future)
    kept = [topic for topic in wanted if topic.name in there and topic.settings]
    for name, future in _set(admin, kept):
        faults += _fault(f"topic {name} could not be set", future)
    if faults:
        raise ConfigError(*faults)
    return [topic.name for topic in missing]


def _partitions(admin: AdminClient, names: list[str]) -> dict[str, int]:
    found = {}
    for name, future in admin.describe_topics(TopicCollection(names), request_timeout=ANSWER_TIMEOUT_S).items():
        try:
            found[name] = len(future.result(ANSWER_TIMEOUT_S).partitions)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise PenstockError(f"the queue does not tell about topic {name}: {error.args[0].str()}") from None
    return found


def _set(admin: AdminClient, topics: list[Wanted]) -> Iterator[tuple[str, Any]]:
    changes = []
    for topic in topics:
        entries = [
            _KINDS.ConfigEntry(name, value, incremental_operation=_KINDS.AlterConfigOpType.SET)
            for name, value in topic.settings.items()
        ]
        changes.append(_KINDS.ConfigResource(_KINDS.ResourceType.TOPIC, topic.name, incremental_configs=entries))
    if changes:
        answers = admin.incremental_alter_configs(changes, request_timeout=ANSWER_TIMEOUT_S)
        yield from ((resource.name, future) for resource, future in answers.items())


def _fault(what: str, future: Any) -> list[str]:
    try:
        future.result(ANSWER_TIMEOUT_S)
    except TimeoutError:
        raise PenstockError(f"the queue does not answer within {ANSWER_TIMEOUT_S:.0f} s") from None
    except KafkaException as error:
        fault = error.args[0]
        _refuse_outage(fault)
        return [] if fault.code() == KafkaError.TOPIC_ALREADY_EXISTS else [f"{what}: {fault.str()}"]
    return []


def _refuse_outage(fault: KafkaError) -> None:
    """A queue that is away says nothing about what was asked: PenstockError, and whoever asked tries again."""
    if fault.retriable() or fault.name().startswith("_"):
        raise PenstockError(f"the queue does not answer ({fault.str()})")


def _ignore(_: KafkaError) -> None:
    """Troubles of a connection are told by the call that they delay."""

"""CreateTopics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from penstock.config.topic import TOPIC_SETTINGS, topic_faults
from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.queue.call import Call, answer_change, change_catalog
from penstock.queue.core.catalog import NODE_ID, name_fault
from penstock.queue.core.catalog_changes import Change, TopicCreated
from penstock.queue.core.host import Host

Refused = tuple[ErrorCode, str]
_DEFAULT = -1
_FAULTS_SAID = 20  # an old answer's text has room for 32 KB
_SOURCE_TOPIC, _SOURCE_DEFAULT = 1, 5


def handle_create_topics(call: Call, request: CreateTopicsRequest) -> None:
    response = CreateTopicsResponse()

    def plan() -> list[Change]:
        changes: list[Change] = []
        times = Counter(topic.name for topic in request.topics)
        for asked in {topic.name: topic for topic in request.topics}.values():
            if times[asked.name] > 1:
                planned: TopicCreated | Refused = (ErrorCode.INVALID_REQUEST, "named twice in one request")
            else:
                planned = _plan(call.host, asked, changes)
            if isinstance(planned, TopicCreated):
                changes.append(planned)
            response.topics.append(_result(asked.name, planned))
        return [] if request.validate_only else changes

    change_catalog(call, plan, answer_change(call, response))


def _plan(host: Host, asked: CreatableTopic, before: Sequence[Change]) -> TopicCreated | Refused:
    overrides = {config.name: config.value for config in asked.configs}
    if faults := topic_faults(overrides):
        return ErrorCode.INVALID_CONFIG, "; ".join(faults[:_FAULTS_SAID])
    count = asked.num_partitions
    if asked.assignments:
        if count != _DEFAULT or asked.replication_factor != _DEFAULT:
            return ErrorCode.INVALID_REQUEST, "give a partition count or an assignment, not both"
        indexes = sorted(assignment.partition_index for assignment in asked.assignments)
        if indexes != list(range(len(indexes))) or any(a.broker_ids != [NODE_ID] for a in asked.assignments):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT, "this broker is the only replica of every partition"
        count = len(indexes)
    elif asked.replication_factor not in (_DEFAULT, 1):
        return (
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {asked.replication_factor} is larger than the number of brokers, 1",
        )
    return plan_topic(host, asked.name, count, {k: v for k, v in overrides.items() if v is not None}, before)


def plan_topic(
    host: Host, name: str, count: int, overrides: dict[str, str], before: Sequence[Change]
) -> TopicCreated | Refused:
    """The change that creates a topic, or why it cannot be; `before` are planned with it."""
    if fault := name_fault(name):
        return ErrorCode.INVALID_TOPIC_EXCEPTION, fault
    if name in host.catalog.topics:
        return ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists."
    if count == _DEFAULT:
        count = host.config.default_partitions
    if count < 1:
        return ErrorCode.INVALID_PARTITIONS, "a topic has at least one partition"
    planned = [change for change in before if isinstance(change, TopicCreated)]
    if len(host.catalog.topics) + len(planned) >= host.config.topics_max:
        return ErrorCode.POLICY_VIOLATION, f"this broker allows {host.config.topics_max} topics (topics_max)"
    if host.catalog.partition_count + sum(c.partitions for c in planned) + count > host.config.partitions_max:
        limit = host.config.partitions_max
        return ErrorCode.POLICY_VIOLATION, f"this broker allows {limit} partitions in all (partitions_max)"
    return TopicCreated(name, host.new_id(), count, overrides)


def _result(name: str, planned: TopicCreated | Refused) -> CreatableTopicResult:
    if not isinstance(planned, TopicCreated):
        return CreatableTopicResult(name=name, error_code=planned[0], error_message=planned[1], configs=[])
    configs = [
        CreatableTopicConfigs(
            name=setting.name,
            value=planned.config.get(setting.name, setting.default),
            config_source=_SOURCE_TOPIC if setting.name in planned.config else _SOURCE_DEFAULT,
        )
        for setting in TOPIC_SETTINGS.values()
    ]
    return CreatableTopicResult(
        name=name,
        topic_id=planned.topic_id,
        error_message=None,
        num_partitions=planned.partitions,
        replication_factor=1,
        configs=configs,
    )

"""IncrementalAlterConfigs: topic settings change while the topic is in use."""

from __future__ import annotations

from penstock.config.setting import clipped, hint
from penstock.config.topic import TOPIC_SETTINGS, topic_faults
from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from penstock.queue.call import Call, answer_change, change_catalog
from penstock.queue.core.catalog import name_fault
from penstock.queue.core.catalog_changes import Change, TopicConfigured
from penstock.queue.handlers.describe_configs import TOPIC

SET, DELETE = 0, 1
Refused = tuple[ErrorCode, str]


def handle_alter_configs(call: Call, request: IncrementalAlterConfigsRequest) -> None:
    response = IncrementalAlterConfigsResponse()

    def plan() -> list[Change]:
        changes: list[Change] = []
        for resource in request.resources:
            planned = _plan(call, resource)
            code, message = (ErrorCode.NONE, None) if isinstance(planned, TopicConfigured) else planned
            response.responses.append(
                AlterConfigsResourceResponse(code, message, resource.resource_type, resource.resource_name)
            )
            if isinstance(planned, TopicConfigured):
                changes.append(planned)
        return [] if request.validate_only else changes

    change_catalog(call, plan, answer_change(call, response))


def _plan(call: Call, resource: AlterConfigsResource) -> TopicConfigured | Refused:
    if resource.resource_type != TOPIC:
        return ErrorCode.INVALID_REQUEST, "only topic settings change at run time; the node's are in penstock.toml"
    topic = call.host.catalog.topics.get(resource.resource_name)
    if topic is None:
        if fault := name_fault(resource.resource_name):
            return ErrorCode.INVALID_TOPIC_EXCEPTION, fault
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is no such topic"
    if len({change.name for change in resource.configs}) < len(resource.configs):
        return ErrorCode.INVALID_REQUEST, "a setting is named twice in one request"
    config = dict(topic.overrides)
    for change in resource.configs:
        # Before the name is looked at: what nobody knows any more must still be removable.
        if change.config_operation == DELETE:
            config.pop(change.name, None)
        elif change.value is None:
            return ErrorCode.INVALID_REQUEST, f"{clipped(change.name)} has no value"
        elif change.name not in TOPIC_SETTINGS:
            message = f"Unknown topic config name: {clipped(change.name)}{hint(change.name, TOPIC_SETTINGS)}"
            return ErrorCode.INVALID_CONFIG, message
        elif change.config_operation == SET:
            if faults := topic_faults({change.name: change.value}):
                return ErrorCode.INVALID_CONFIG, faults[0]
            config[change.name] = change.value
        else:
            return ErrorCode.INVALID_CONFIG, f"{change.name} has one value: it can be set or deleted"
    return TopicConfigured(topic.topic_id, config)

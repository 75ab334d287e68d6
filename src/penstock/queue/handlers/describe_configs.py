"""DescribeConfigs: the settings of topics, and of this node."""

from __future__ import annotations

import dataclasses

from penstock.config.broker import BrokerConfig
from penstock.config.topic import TOPIC_SETTINGS
from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from penstock.queue.call import Call
from penstock.queue.core.catalog import NODE_ID, Topic, name_fault

TOPIC, BROKER, GROUP = 2, 4, 32
_SOURCE_TOPIC, _SOURCE_STATIC_BROKER, _SOURCE_DEFAULT = 1, 4, 5
_TYPES = {"boolean": 1, "string": 2, "int": 3, "long": 5, "list": 7}
_PYTHON_TYPES = {bool: 1, str: 2, int: 5}


def handle_describe_configs(call: Call, request: DescribeConfigsRequest) -> None:
    response = DescribeConfigsResponse()
    for resource in request.resources:
        result = DescribeConfigsResult(
            resource_type=resource.resource_type, resource_name=resource.resource_name, error_message=None
        )
        response.results.append(result)
        if resource.resource_type == TOPIC:
            topic = call.host.catalog.topics.get(resource.resource_name)
            if topic is None:
                fault = name_fault(resource.resource_name)
                result.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION if fault else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                result.error_message = fault or "there is no such topic"
            else:
                result.configs = _of_topic(topic, resource, request)
        elif resource.resource_type == GROUP and resource.resource_name:
            result.configs = _of_group(call.host.config, resource, request)
        elif resource.resource_type == BROKER and resource.resource_name in ("", str(NODE_ID)):
            result.configs = _by_kafkas_names(call, resource, request) + _of_node(call.host.config, resource, request)
        else:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = f"this node is broker {NODE_ID}; it has settings for itself and for topics"
    call.reply(response)


def _of_topic(
    topic: Topic, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> list[DescribeConfigsResourceResult]:
    results = []
    for setting in TOPIC_SETTINGS.values():
        if resource.configuration_keys is not None and setting.name not in resource.configuration_keys:
            continue
        own = topic.overrides.get(setting.name)
        synonyms = [DescribeConfigsSynonym(setting.name, setting.default, _SOURCE_DEFAULT)]
        if own is not None:
            synonyms.insert(0, DescribeConfigsSynonym(setting.name, own, _SOURCE_TOPIC))
        results.append(
            DescribeConfigsResourceResult(
                name=setting.name,
                value=setting.default if own is None else own,
                config_source=_SOURCE_DEFAULT if own is None else _SOURCE_TOPIC,
                synonyms=synonyms if request.include_synonyms else [],
                config_type=_TYPES[setting.kind],
                documentation=setting.doc if request.include_documentation else None,
            )
        )
    return results


def _of_group(
    config: BrokerConfig, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> list[DescribeConfigsResourceResult]:
    """What the broker sets for all groups of the newer protocol, by Kafka's names."""
    found = {
        "consumer.heartbeat.interval.ms": (config.consumer_heartbeat_ms, "How often members are told to come."),
        "consumer.session.timeout.ms": (config.consumer_session_ms, "How long a member may be silent."),
    }
    wanted = found if resource.configuration_keys is None else resource.configuration_keys
    return [
        DescribeConfigsResourceResult(
            name=name,
            value=str(value),
            read_only=True,
            config_source=_SOURCE_DEFAULT,
            config_type=_TYPES["int"],
            documentation=doc if request.include_documentation else None,
        )
        for name, (value, doc) in found.items()
        if name in wanted
    ]


def _by_kafkas_names(
    call: Call, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> list[DescribeConfigsResourceResult]:
    """What consoles and admin clients look for in a broker."""
    host, port = call.host.address
    config = call.host.config
    found = {
        "advertised.listeners": ("list", f"PLAINTEXT://{host}:{port}", "The address told to clients."),
        "auto.create.topics.enable": ("boolean", str(config.auto_create_topics).lower(), "Whether use makes a topic."),
        "default.replication.factor": ("int", "1", "One node, one replica."),
        "delete.topic.enable": ("boolean", "true", "Topics can be removed."),
        "num.partitions": ("int", str(config.default_partitions), "Of a topic created without a count."),
    }
    wanted = found if resource.configuration_keys is None else resource.configuration_keys
    return [
        DescribeConfigsResourceResult(
            name=name,
            value=value,
            read_only=True,
            config_source=_SOURCE_STATIC_BROKER,
            config_type=_TYPES[kind],
            documentation=doc if request.include_documentation else None,
        )
        for name, (kind, value, doc) in found.items()
        if name in wanted
    ]


def _of_node(
    config: BrokerConfig, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> list[DescribeConfigsResourceResult]:
    results = []
    for field in dataclasses.fields(config):
        name = f"penstock.{field.name}"
        if resource.configuration_keys is not None and name not in resource.configuration_keys:
            continue
        value = getattr(config, field.name)
        results.append(
            DescribeConfigsResourceResult(
                name=name,
                value=str(value).lower() if isinstance(value, bool) else str(value),
                read_only=True,
                config_source=_SOURCE_DEFAULT if value == field.default else _SOURCE_STATIC_BROKER,
                config_type=_PYTHON_TYPES[type(value)],
                documentation=field.metadata["reason"] if request.include_documentation else None,
            )
        )
    return results

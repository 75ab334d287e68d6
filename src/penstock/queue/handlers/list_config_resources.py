"""ListConfigResources: what DescribeConfigs can tell of."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    ListedConfigResource,
)
from penstock.queue.call import Call
from penstock.queue.core.catalog import NODE_ID
from penstock.queue.handlers.describe_configs import BROKER, GROUP, TOPIC

_BROKER_LOGGER, _CLIENT_METRICS = 8, 16
_ALL = (TOPIC, BROKER, _BROKER_LOGGER, _CLIENT_METRICS, GROUP)


def handle_list_config_resources(call: Call, request: ListConfigResourcesRequest) -> None:
    """Loggers and metrics of clients have no settings here, and groups none of their own."""
    wanted = set(request.resource_types or _ALL) if call.header.api_version >= 1 else {_CLIENT_METRICS}
    if not wanted <= set(_ALL):
        call.reply(ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        return
    found = []
    if TOPIC in wanted:
        found += [ListedConfigResource(name, TOPIC) for name in call.host.catalog.topics]
    if BROKER in wanted:
        found.append(ListedConfigResource(str(NODE_ID), BROKER))
    call.reply(ListConfigResourcesResponse(config_resources=found))

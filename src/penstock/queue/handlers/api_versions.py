"""ApiVersions: just what works."""

from __future__ import annotations

import re

from penstock.errors import ErrorCode
from penstock.kafka.wire.apis import APIS, ApiKey
from penstock.kafka.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from penstock.queue.call import Call

# Like Kafka 4 we say that Produce starts at 0 and refuse 0 to 2: older librdkafka (2.0.2 was seen) sends gzip and
# snappy as plain records to a broker that does not say so (KAFKA-18659).
_SAID_MIN = {ApiKey.PRODUCE: 0}
_SERVED = [
    ApiVersion(api.key, _SAID_MIN.get(api.key, api.min_version), api.max_version)
    for api in sorted(APIS.values(), key=lambda api: api.key)
]
_FEATURES = {"transaction.version": 2}  # KIP-890: the epoch grows with every transaction
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")  # KIP-511: what may go into logs and metrics
_UNKNOWN = ("unknown", "unknown")


def handle_api_versions(call: Call, request: ApiVersionsRequest) -> None:
    software = _UNKNOWN
    if call.header.api_version >= 3:
        software = (request.client_software_name, request.client_software_version)
        if not all(_SOFTWARE.fullmatch(name) for name in software):
            call.reply(ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST))
            return
    call.host.counters.called_by(*software)
    answer = ApiVersionsResponse(api_keys=_SERVED)
    if call.header.api_version >= 3:
        answer.finalized_features_epoch = 0
        answer.finalized_features = [FinalizedFeatureKey(name, level, level) for name, level in _FEATURES.items()]
    if call.header.api_version >= 4:  # clients of version 3 refuse a smallest level of 0
        answer.supported_features = [SupportedFeatureKey(name, 0, level) for name, level in _FEATURES.items()]
    call.reply(answer)


def refuse_api_versions(call: Call) -> None:
    """KIP-511: a client that asked in a newer version is answered in version 0, and can ask again."""
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_SERVED)
    call.reply(response, version=0)

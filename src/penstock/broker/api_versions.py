"""ApiVersions: just what works."""

from __future__ import annotations

from penstock.broker.call import Call
from penstock.errors import ErrorCode
from penstock.wire.apis import APIS
from penstock.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

_SERVED = [ApiVersion(api.key, api.min_version, api.max_version) for api in sorted(APIS.values(), key=lambda a: a.key)]


def handle_api_versions(call: Call, request: ApiVersionsRequest) -> None:
    call.reply(ApiVersionsResponse(api_keys=_SERVED))


def refuse_api_versions(call: Call) -> None:
    """KIP-511: a client that asked in a newer version is answered in version 0, and can ask again."""
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=_SERVED)
    call.reply(response, version=0)

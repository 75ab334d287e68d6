"""DescribeAcls: there are no rules to tell, and consoles want to hear so."""

from __future__ import annotations

from penstock.broker.call import Call
from penstock.errors import ErrorCode
from penstock.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def handle_describe_acls(call: Call, request: DescribeAclsRequest) -> None:
    """What Kafka answers where nobody is asked who he is."""
    call.reply(DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message="this broker has no ACLs"))

"""DescribeAcls: there are no rules to tell, and consoles want to hear so."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from penstock.queue.call import Call


def handle_describe_acls(call: Call, request: DescribeAclsRequest) -> None:
    """What Kafka answers where nobody is asked who he is."""
    call.reply(DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message="this broker has no ACLs"))

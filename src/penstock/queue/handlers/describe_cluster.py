"""DescribeCluster: one node."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from penstock.queue.call import Call
from penstock.queue.core.catalog import NODE_ID

BROKERS, CONTROLLERS = 1, 2


def handle_describe_cluster(call: Call, request: DescribeClusterRequest) -> None:
    if request.endpoint_type != BROKERS:
        known = request.endpoint_type == CONTROLLERS
        code = ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        call.reply(DescribeClusterResponse(error_code=code, error_message="this is the address of a broker"))
        return
    host, port = call.host.address
    call.reply(
        DescribeClusterResponse(
            cluster_id=call.host.catalog.cluster_id,
            controller_id=NODE_ID,
            brokers=[DescribeClusterBroker(broker_id=NODE_ID, host=host, port=port)],
        )
    )

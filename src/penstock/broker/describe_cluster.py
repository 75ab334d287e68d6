"""DescribeCluster: one node."""

from __future__ import annotations

from penstock.broker.call import Call
from penstock.broker.metadata import NODE_ID
from penstock.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)


def handle_describe_cluster(call: Call, request: DescribeClusterRequest) -> None:
    host, port = call.node.address
    call.reply(
        DescribeClusterResponse(
            endpoint_type=request.endpoint_type,
            cluster_id=call.node.catalog.cluster_id,
            controller_id=NODE_ID,
            brokers=[DescribeClusterBroker(broker_id=NODE_ID, host=host, port=port)],
        )
    )

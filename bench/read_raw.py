"""A process that fetches a topic and reads batch headers only, so the broker is the limit: ADDRESS TOPIC RECORDS."""

from __future__ import annotations

import json
import sys
import time

from bench.wire_client import WireClient
from penstock.errors import PeerError
from penstock.kafka.records.batch import HEADER_SIZE, decode_header
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

_VERSION = 11
_FETCH_BYTES = 1 << 20  # max.partition.fetch.bytes of Kafka's consumer


def read_all(address: str, topic: str, records: int) -> float:
    """Records a second, one fetch of at most 1 MiB at a time."""
    offset = 0
    begun = time.perf_counter()
    with WireClient(address) as client:
        while offset < records:
            offset = _fetch(client, topic, offset)
    return records / (time.perf_counter() - begun)


def _fetch(client: WireClient, topic: str, offset: int) -> int:
    partition = FetchPartition(0, fetch_offset=offset, partition_max_bytes=_FETCH_BYTES)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=50 << 20, topics=[FetchTopic(topic, partitions=[partition])]
    )
    answer = client.ask(ApiKey.FETCH, _VERSION, request, FetchResponse).responses[0].partitions[0]
    if answer.error_code or not answer.records:
        raise PeerError(f"a fetch from offset {offset} of {topic} brought nothing: error {answer.error_code}")
    data = memoryview(answer.records)
    at = 0
    while at + HEADER_SIZE <= len(data):
        header = decode_header(data, at)
        at += header.size
        if at <= len(data):
            offset = header.next_offset
    return offset


if __name__ == "__main__":
    print(json.dumps({"rate": read_all(sys.argv[1], sys.argv[2], int(sys.argv[3]))}))

"""A process that reads a whole topic as one who was away for days: ADDRESS TOPIC PARTITIONS. Prints when, and bytes."""

from __future__ import annotations

import json
import os
import sys
import time

from bench.topics import end_offset
from bench.wire_client import WireClient
from penstock.errors import PeerError
from penstock.kafka.records.batch import HEADER_SIZE, decode_header
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

_VERSION = 11
_PARTITION_BYTES, _FETCH_BYTES = 1 << 20, 50 << 20  # the defaults of Kafka's consumer


def read_backlog(address: str, topic: str, partitions: int) -> dict[str, int]:
    """From the first record of every partition to its last: when it began and ended, and how many bytes came."""
    ends = {number: end_offset(address, topic, number) for number in range(partitions)}
    offsets = dict.fromkeys(ends, 0)
    size = 0
    began_ns = time.monotonic_ns()
    with WireClient(address) as client:
        while missing := [number for number, end in ends.items() if offsets[number] < end]:
            size += _fetch(client, topic, {number: offsets[number] for number in missing}, offsets)
    return {"began_ns": began_ns, "ended_ns": time.monotonic_ns(), "bytes": size}


def _fetch(client: WireClient, topic: str, wanted: dict[int, int], offsets: dict[int, int]) -> int:
    partitions = [FetchPartition(number, fetch_offset=at, partition_max_bytes=_PARTITION_BYTES)
                  for number, at in wanted.items()]  # fmt: skip
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=_FETCH_BYTES, topics=[FetchTopic(topic, partitions=partitions)]
    )
    size = 0
    for answer in client.ask(ApiKey.FETCH, _VERSION, request, FetchResponse).responses[0].partitions:
        if answer.error_code:
            raise PeerError(f"a fetch of {topic}-{answer.partition_index} failed: error {answer.error_code}")
        data = memoryview(answer.records or b"")
        at = 0
        while at + HEADER_SIZE <= len(data):
            header = decode_header(data, at)
            at += header.size
            if at <= len(data):
                offsets[answer.partition_index] = header.next_offset
        size += len(data)
    return size


if __name__ == "__main__":
    # On a real network this reader has a machine of its own: it must not take the processor from the live clients.
    os.nice(10)
    print(json.dumps(read_backlog(sys.argv[1], sys.argv[2], int(sys.argv[3]))))

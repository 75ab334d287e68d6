"""Consumers with nothing to read: ADDRESS TOPIC PARTITIONS CONSUMERS SECONDS PID. Prints what the broker spends."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from bench.group_members import AsyncClient, GroupMember, find_coordinator, settle
from bench.process import cpu_seconds, resident_bytes
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

_GROUP_SIZE = 100
_HEARTBEAT_S, _WAIT_MS = 3.0, 500  # the defaults of Kafka's consumer


async def idle(address: str, topic: str, partitions: int, consumers: int, seconds: float, pid: int) -> dict[str, float]:
    """Every consumer heartbeats in its group and waits in a fetch on a second connection, as real ones do."""
    tasks = []
    for first in range(0, consumers, _GROUP_SIZE):
        group = f"{topic}-{first}"
        await find_coordinator(address, group)
        members = [GroupMember(await AsyncClient.open(address), group, topic) for _ in range(_GROUP_SIZE)]
        await settle(members)
        tasks += [asyncio.create_task(_beat(member)) for member in members]
        fetchers = [await AsyncClient.open(address) for _ in members]
        tasks += [asyncio.create_task(_wait(fetcher, topic, n % partitions)) for n, fetcher in enumerate(fetchers)]
    await asyncio.sleep(_HEARTBEAT_S)
    before, begun = cpu_seconds(pid), time.monotonic()
    await asyncio.sleep(seconds)
    share = (cpu_seconds(pid) - before) / (time.monotonic() - begun)
    for task in tasks:
        if task.done():
            task.result()
        task.cancel()
    return {"cpu": share * 100, "megabytes": resident_bytes(pid) / 1e6}


async def _beat(member: GroupMember) -> None:
    while True:
        await asyncio.sleep(_HEARTBEAT_S)
        if await member.is_called_back():
            await member.join()


async def _wait(client: AsyncClient, topic: str, partition: int) -> None:
    wanted = FetchPartition(partition, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(max_wait_ms=_WAIT_MS, min_bytes=1, topics=[FetchTopic(topic, partitions=[wanted])])
    while True:
        await client.ask(ApiKey.FETCH, 11, request, FetchResponse)


if __name__ == "__main__":
    _, where, what, parts, count, length_s, process = sys.argv
    told = asyncio.run(idle(where, what, int(parts), int(count), float(length_s), int(process)))
    print(json.dumps(told))

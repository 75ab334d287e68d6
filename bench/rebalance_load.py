"""A process with all members of a group: ADDRESS TOPIC GROUP MEMBERS TIMES. Prints how long rebalances took."""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time

from bench.group_members import AsyncClient, GroupMember, find_coordinator, settle


async def rebalances(address: str, topic: str, group: str, size: int, times: int) -> dict[str, float]:
    """Each time one joins a stable group of `size`: ms from its first word until all know their share."""
    await find_coordinator(address, group)
    members = [await _member(address, topic, group) for _ in range(size)]
    await settle(members)
    took_ms = []
    for _ in range(times):
        newcomer = await _member(address, topic, group)
        begun = time.perf_counter()
        joining = asyncio.create_task(newcomer.join())
        await _called_back(members[-1])
        # Members learn of it by a heartbeat; here all at once, so that the broker is measured and not the interval.
        await asyncio.gather(joining, *(member.join() for member in members))
        took_ms.append((time.perf_counter() - begun) * 1e3)
        await newcomer.leave()
        await _called_back(members[-1])
        await settle(members)
    return {"ms": statistics.median(took_ms)}


async def _called_back(member: GroupMember) -> None:
    while not await member.is_called_back():
        pass


async def _member(address: str, topic: str, group: str) -> GroupMember:
    return GroupMember(await AsyncClient.open(address), group, topic)


if __name__ == "__main__":
    _, where, what, who, count, repeats = sys.argv
    print(json.dumps(asyncio.run(rebalances(where, what, who, int(count), int(repeats)))))

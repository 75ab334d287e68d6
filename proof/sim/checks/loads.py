"""What must hold while fetches wait for old records to come from the disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from penstock.kafka.wire.apis import ApiKey
from penstock.queue.core.connection import Connection
from penstock.queue.core.waiting_fetch import WaitingFetch

if TYPE_CHECKING:
    from penstock.queue.node import Node
    from proof.sim.world_view import WorldView

READ_IN_STEP_MAX = 100  # as the limit is in a small world


def loads_are_bounded(world: WorldView) -> str | None:
    """The disk reads for a few at once; it never idles while somebody waits, and every end is waited for."""
    node = world.node
    if node is None:
        return None
    under_way = sorted(world.loader.under_way)
    if len(under_way) > world.profile.config.loads_max:
        return f"{len(under_way)} loads are under way, {world.profile.config.loads_max} may be"
    if under_way != sorted(node.loads.under_way):
        return f"loads {under_way} are under way, awaited are {sorted(node.loads.under_way)}"
    if node.loads.put_off and len(under_way) < world.profile.config.loads_max:
        return f"{len(node.loads.put_off)} loads are put off, although only {len(under_way)} are under way"
    return None


def nobody_gone_waits(world: WorldView) -> str | None:
    """Who is gone leaves no fetch behind, neither for the disk nor for new records."""
    node = world.node
    if node is None:
        return None
    for waiting in _all_waiting(node):
        connection = waiting.slot.connection
        if node.connections.get(connection.number) is not connection or waiting.slot not in connection.slots:
            return f"a fetch of connection {connection.number} waits, and nobody for its answer"
    return None


def only_absent_is_loaded(world: WorldView) -> str | None:
    """Who reads what is in memory does not wait for the disk."""
    if world.loader.needless:
        return f"{world.loader.needless[0]} is loaded, although what is wanted of it is in memory"
    return None


def steps_do_not_wait_for_the_disk(world: WorldView) -> str | None:
    """What is not in memory is never read for a fetch while everybody waits, but for a little."""
    node = world.node
    if node is None:
        return None
    looked_up = node.counters.requests[ApiKey.LIST_OFFSETS]
    were_open, had_looked_up = world.remembered.get("before-step", ({}, 0))
    world.remembered["before-step"] = dict(node.store.open), looked_up
    if looked_up != had_looked_up or world.loader.is_last_over:
        return None  # a look for a time reads as well, and so does who has asked for it in vain
    for key, partition in node.store.open.items():
        account = world.ledger.accounts.get(key)
        if were_open.get(key) is not partition or account is None or account.damaged:
            continue
        for path, cold_bytes in world.disk.pages.cold_reads:
            is_ours = path.startswith(f"{account.folder}/") and path not in world.loader.missed
            if is_ours and cold_bytes > READ_IN_STEP_MAX:
                return f"a step read {cold_bytes} bytes of {path} that were not in memory"
    return None


def waits_for_the_disk(node: Node, connection: Connection) -> bool:
    """Whether the oldest request of a connection does."""
    waiting = (*node.loads.under_way.values(), *node.loads.put_off)
    return any(each.slot is connection.slots[0] for each in waiting if connection.slots)


def _all_waiting(node: Node) -> Iterator[WaitingFetch]:
    yield from node.loads.put_off
    # One that is under way cannot be called back; only nobody may wait for it then.
    yield from (waiting for waiting in node.loads.under_way.values() if not waiting.is_done)
    for partition in node.store.open.values():
        yield from (waiting for waiting in partition.fetches if isinstance(waiting, WaitingFetch))

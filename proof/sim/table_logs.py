"""What a coordinator believes, beside what its durable journal says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.kafka.records.record import decode_records
from penstock.queue.log.log import Log
from proof.sim.disk_image import raw_batch

if TYPE_CHECKING:
    from proof.sim.world_view import WorldView


def unlike_replay(
    world: WorldView, folder: str, log: Log, rebuild: Callable[[list[bytes]], object], believed: object
) -> str | None:
    """How `believed` differs from what is rebuilt from the durable records of a journal; None if it does not."""
    if log.stopped is not None:
        return None
    end = log.visible.offset
    if world.imager.durable_end(folder) < end:
        return f"the journal of {folder} shows offset {end}, durable is {world.imager.durable_end(folder)}"
    durable = world.imager.durable(folder)
    known = world.remembered.get(folder)
    if known is None or known[0] is not durable or known[1] != end or known[2] != log.start_offset:
        bases = [base for base in sorted(durable) if log.start_offset <= base < end]
        values = [record.value or b"" for base in bases for record in decode_records(raw_batch(durable[base]))]
        known = world.remembered[folder] = (durable, end, log.start_offset, rebuild(values))
    if believed != known[3]:
        return f"what is known of {folder} is not what their journal says up to offset {end}"
    return None

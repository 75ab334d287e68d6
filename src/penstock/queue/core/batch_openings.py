"""Opens the batches of produce requests to check them: small ones at once, large ones beside the loop."""

from __future__ import annotations

from penstock.config.broker import BrokerConfig
from penstock.errors import PeerError
from penstock.kafka.records.batch import HEADER_SIZE, Refusal
from penstock.kafka.records.compression import OpensTooLargeError
from penstock.kafka.records.framing import framing_fault
from penstock.kafka.records.opening import open_batch
from penstock.kafka.wire.header import RequestHeader
from penstock.queue.core.connection import Slot
from penstock.queue.core.events import Open
from penstock.queue.core.waiting_request import WaitingRequest

Found = dict[int, Refusal | None]  # what was found in the batches of a request, by their number in it


class Opening(WaitingRequest):
    """A produce request that waits until its large batches have been opened; all of it is stored after that."""

    __slots__ = ("asked", "batches", "found", "frame", "header", "openings", "slot")

    def __init__(
        self,
        openings: Openings,
        slot: Slot,
        header: RequestHeader,
        frame: memoryview,
        found: Found,
        asked: list[int],
        batches: list[memoryview],
    ) -> None:
        self.openings = openings
        self.slot = slot
        self.header = header
        self.frame = frame
        self.found = found
        self.asked = asked
        self.batches = batches

    def abandon(self) -> None:
        self.openings.forget(self)


class Openings:
    """Requests that wait for their batches. A few jobs are under way at once; the next wait in the order they came."""

    def __init__(self, config: BrokerConfig) -> None:
        self._under_way_max = config.openings_max
        self.on_loop_max = config.opened_on_loop_bytes_max
        self._left = self.on_loop_max  # of this step
        self.under_way: dict[int, Opening] = {}
        self.put_off: dict[Opening, None] = {}
        self._last = 0

    def fault(self, batch: memoryview, codec: int, count: int) -> str | None:
        """What is wrong with the records of a batch; OpensTooLargeError where a step has no time to find out."""
        if codec == 0:
            if len(batch) > self.on_loop_max:
                raise OpensTooLargeError(self.on_loop_max)
            return framing_fault(bytes(batch[HEADER_SIZE:]), count)
        if self._left <= 0:
            raise OpensTooLargeError(self.on_loop_max)
        try:
            data = bytes(open_batch(batch, codec, self._left))
        except PeerError as wrong:
            self._left = 0  # it may have taken as much time as the largest that may be opened
            if isinstance(wrong, OpensTooLargeError):
                raise
            return str(wrong)
        self._left -= len(data)
        return framing_fault(data, count)

    def want(self, opening: Opening) -> None:
        """Let a request, and all later ones of its connection, wait for its large batches."""
        opening.slot.connection.opening = opening
        self.put_off[opening] = None

    def take(self) -> list[Open]:
        """At the end of a step: what to begin now."""
        self._left = self.on_loop_max
        begun = []
        while self.put_off and len(self.under_way) < self._under_way_max:
            opening = next(iter(self.put_off))
            del self.put_off[opening]
            self._last += 1
            self.under_way[self._last] = opening
            begun.append(Open(self._last, opening.batches))
        return begun

    def forget(self, opening: Opening) -> None:
        """The client is gone: what has not begun never will, and the end of what has changes nothing."""
        self.put_off.pop(opening, None)
        opening.slot.connection.opening = None

    def end(self, job: int, refusals: list[Refusal | None]) -> Opening | None:
        """The request whose batches were opened, unless its client is gone."""
        opening = self.under_way.pop(job)
        connection = opening.slot.connection
        if connection.opening is not opening or connection.is_closed:
            return None
        connection.opening = None
        opening.found.update(zip(opening.asked, refusals, strict=True))
        return opening

"""The promises of a log, each checked on the evidence of one partition."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator

from penstock.assure.evidence import Coverage, Evidence, Write
from penstock.assure.verdict import Doubt, Finding, Reason, Violation


class Case:
    """The evidence on one partition, with what all checks ask of it."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.place = f"{evidence.topic}/{evidence.partition}"
        self.final = evidence.final_read()
        self.final_covers = self.final.covers() if self.final else Coverage([])
        self.passed = Coverage([(jump.low, jump.high) for jump in evidence.jumps])

    def finding(
        self, violation: Violation, offset: int | None, value: str | None, events: tuple[int, ...], what: str
    ) -> Finding:
        numbers = tuple(sorted({number for number in events if number}))
        said = f"{self.place}: {what} (events {', '.join(map(str, numbers))})"
        partition = self.evidence.partition
        return Finding(violation, self.evidence.topic, partition, offset, value, numbers, said)

    def survives(self, write: Write) -> bool:
        """The final read saw it, or it was given up on purpose."""
        low, covers = self.evidence.trimmed, self.final_covers
        first = write.read_offset
        if first is None or first < low or first in covers:
            return first is not None
        return any(offset < low or offset in covers for offset in write.more or ())

    def due(self, event: int) -> bool:
        """What happened at this event must show in the final read."""
        return self.final is not None and event < self.final.begun

    def loss(self, write: Write) -> str | None:
        """Why an acknowledged write counts as lost; None if it does not."""
        offset = write.ack_offset
        if write.read_offset is not None:
            gone = self.due(write.ack_event) and not self.survives(write)
            return f"was read at offset {write.read_offset}, but the final read missed it" if gone else None
        if self.trimmed(write):
            return None
        if offset is not None and offset in self.evidence.at:
            return f"was read by nobody, and its offset holds {self.evidence.at[offset].value}"
        if offset is not None and offset in self.passed:
            return "was read by nobody, though a reader passed its offset"
        if self.due(write.ack_event):
            return "was read by nobody, not even by the final read"
        return None

    def trimmed(self, write: Write) -> bool:
        """An unread write that may have been given up on purpose."""
        low = self.evidence.trimmed
        return low > 0 and (write.ack_offset is None or write.ack_offset < low)


def find_inconsistent_offsets(case: Case) -> Iterator[Finding]:
    """All reads, and all acknowledgements, agree on the value of an offset."""
    name = Violation.INCONSISTENT_OFFSETS
    for offset, first, second, event in case.evidence.conflicts:
        before = next(s.event for s in first.sightings() if s.offset == offset)
        what = f"offset {offset} was read as {first.value} and as {second.value}"
        yield case.finding(name, offset, second.value, (before, event), what)
    owners: dict[int, Write] = {}
    for write in case.evidence.writes.values():
        if write.ack_offset is not None:
            owner = owners.setdefault(write.ack_offset, write)
            if owner is not write:
                what = f"offset {write.ack_offset} was acknowledged for {owner.value} and for {write.value}"
                events = (owner.ack_event, write.ack_event)
                yield case.finding(name, write.ack_offset, write.value, events, what)


def find_duplicates(case: Case) -> Iterator[Finding]:
    """A value that an idempotent producer sent once stands at one offset."""
    for write in case.evidence.writes.values():
        if write.more and write.once:
            seen = list(write.sightings())
            offsets = ", ".join(str(s.offset) for s in seen)
            what = f"{write.value} of idempotent producer {write.producer} stands at offsets {offsets}"
            events = (write.send_event, *(s.event for s in seen))
            yield case.finding(Violation.DUPLICATE, seen[1].offset, write.value, events, what)


def find_lost(case: Case) -> Iterator[Finding]:
    """An acknowledged write is there for whoever reads past it, and for the final read."""
    for write in case.evidence.writes.values():
        loss = case.loss(write) if write.acked else None
        if loss is not None:
            offset = write.ack_offset if write.ack_offset is not None else write.read_offset
            where = "" if write.ack_offset is None else f" at offset {write.ack_offset}"
            final = case.final.begun if case.final else 0
            events = (write.send_event, write.ack_event, write.read_event, final)
            what = f"{write.value}, acknowledged{where}, {loss}"
            yield case.finding(Violation.LOST, offset, write.value, events, what)


def find_vanished(case: Case) -> Iterator[Finding]:
    """What a reader was once given stays, acknowledged or not."""
    for write in case.evidence.writes.values():
        if write.read_offset is None or write.failed or not write.sends:
            continue
        if write.acked and case.due(write.ack_event):
            continue
        if case.due(write.read_event) and not case.survives(write):
            final = case.final.begun if case.final else 0
            what = f"{write.value} was read at offset {write.read_offset}, but the final read missed it"
            events = (write.send_event, write.read_event, final)
            yield case.finding(Violation.VANISHED, write.read_offset, write.value, events, what)


def find_phantoms(case: Case) -> Iterator[Finding]:
    """What is read was sent to this partition."""
    for write in case.evidence.writes.values():
        if not write.sends:
            what = f"{write.value} was read at offset {write.read_offset}, but nobody sent it here"
            events = (write.read_event,)
            yield case.finding(Violation.PHANTOM, write.read_offset, write.value, events, what)


def find_failed_write_reads(case: Case) -> Iterator[Finding]:
    """A write that failed for certain is read by nobody."""
    for write in case.evidence.writes.values():
        if write.read_offset is not None and write.failed:
            what = f"{write.value} was read at offset {write.read_offset}, though its send had failed"
            events = (write.send_event, write.read_event)
            yield case.finding(Violation.FAILED_WRITE_READ, write.read_offset, write.value, events, what)


def find_acked_at_other_offset(case: Case) -> Iterator[Finding]:
    """A write stands where its acknowledgement said."""
    for write in case.evidence.writes.values():
        offset = write.ack_offset
        if offset is None or write.read_offset is None:
            continue
        if write.read_offset == offset or (write.more and offset in write.more):
            continue
        # A repeat that nobody forbade may stand earlier, while the acknowledged one is not read yet.
        refuted = offset in case.evidence.at or offset in case.passed or case.due(write.ack_event)
        if write.once or (refuted and offset >= case.evidence.trimmed):
            what = f"{write.value} was acknowledged at offset {offset}, but read at {write.read_offset}"
            events = (write.ack_event, write.read_event)
            yield case.finding(Violation.ACKED_AT_OTHER_OFFSET, offset, write.value, events, what)


def find_reordered(case: Case) -> Iterator[Finding]:
    """Acknowledged writes of one idempotent producer stand in the order in which they were sent."""
    last: dict[str, tuple[int, Write]] = {}
    # A send that follows its own read or answer in a joined history is not first by insertion.
    sent = sorted(case.evidence.writes.values(), key=lambda write: write.send_event)
    for write in sent:
        offset = write.read_offset if write.read_offset is not None else write.ack_offset
        if not (write.acked and write.once) or write.producer is None or offset is None:
            continue
        above, earlier = last.get(write.producer, (-1, write))
        if offset < above:
            what = (
                f"{write.value} stands at offset {offset}, before {earlier.value} at {above}, "
                f"which producer {write.producer} had sent earlier"
            )
            events = (earlier.send_event, write.send_event, earlier.read_event, write.read_event)
            yield case.finding(Violation.REORDERED, offset, write.value, events, what)
        else:
            last[write.producer] = (offset, write)


def find_skipped_polls(case: Case) -> Iterator[Finding]:
    """An assignment is not led past an offset at which anybody read a value."""
    offsets = sorted(case.evidence.at) if case.evidence.jumps else []
    for low, high, reader, event in case.evidence.jumps:
        at = bisect_left(offsets, max(low, case.evidence.trimmed))
        if at < len(offsets) and offsets[at] < high:
            write = case.evidence.at[offsets[at]]
            what = f"{reader} was led from offset {low} to {high}, past {write.value} at {offsets[at]}"
            events = (event, write.read_event)
            yield case.finding(Violation.SKIPPED_POLL, offsets[at], write.value, events, what)


def find_backward_polls(case: Case) -> Iterator[Finding]:
    """An assignment is not led back."""
    for low, high, reader, event in case.evidence.backsteps:
        what = f"{reader} expected offset {low} and was given {high}"
        yield case.finding(Violation.BACKWARD_POLL, high, None, (event,), what)


LOG_CHECKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    find_lost,
    find_vanished,
    find_duplicates,
    find_inconsistent_offsets,
    find_phantoms,
    find_failed_write_reads,
    find_acked_at_other_offset,
    find_reordered,
    find_skipped_polls,
    find_backward_polls,
)


def find_doubts(case: Case) -> Iterator[Reason]:
    """What this partition's history leaves open."""
    for sentence in case.evidence.incomplete:
        yield Reason(Doubt.INCOMPLETE, f"{case.place}: {sentence}")
    acked = [write for write in case.evidence.writes.values() if write.acked]
    if not acked:
        return
    if case.final is None:
        yield Reason(Doubt.NO_FINAL_READ, f"{case.place}: nobody read it from the beginning to the end")
    unseen = [
        write.value
        for write in acked
        if write.read_offset is None and not case.trimmed(write) and case.loss(write) is None
    ]
    if unseen:
        many = f"{len(unseen)} acknowledged writes were" if len(unseen) > 1 else "an acknowledged write was"
        what = f"{many} read by nobody and may stand where nobody read, the first is {unseen[0]}"
        yield Reason(Doubt.UNSEEN, f"{case.place}: {what}")
    late = sum(not case.due(w.ack_event) and not case.survives(w) for w in acked) if case.final else 0
    if late > len(unseen):
        what = f"{late} writes were acknowledged after the final read began and it did not see them"
        yield Reason(Doubt.NO_FINAL_READ, f"{case.place}: {what}")

"""The promises of transactions: seen whole, once, or not at all, by readers of committed records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.assure.evidence import Evidence, Write
from penstock.assure.group_evidence import Dealings, Place, Transaction
from penstock.assure.log_checks import (
    Case,
    find_backward_polls,
    find_inconsistent_offsets,
    find_skipped_polls,
)
from penstock.assure.verdict import Doubt, Finding, Reason, Violation


class Views:
    """Each partition as anybody and as readers of committed records saw it."""

    def __init__(self, everything: Mapping[Place, Evidence], committed: Mapping[Place, Evidence]) -> None:
        self.everything = everything
        self.cases = {place: Case(evidence) for place, evidence in committed.items()}

    def seen(self, place: Place, value: str) -> Write | None:
        """How readers of committed records saw a value; None if none of them did."""
        case = self.cases.get(place)
        write = None if case is None else case.evidence.writes.get(value)
        return None if write is None or write.read_offset is None else write

    def is_kept(self, place: Place, value: str) -> bool:
        """The final read of committed records saw it, or it was given up on purpose."""
        write = self.seen(place, value)
        return write is not None and self.cases[place].survives(write)

    def is_final(self, place: Place, event: int) -> bool:
        """What was true at this event shows in the final read of committed records."""
        case = self.cases.get(place)
        return case is not None and case.due(event)


def find_transaction_faults(dealings: Dealings, views: Views) -> Iterator[Finding]:
    """Every broken promise about transactions."""
    for transaction in dealings.transactions.values():
        yield from _find_aborted_reads(transaction, views)
        yield from _find_torn_or_lost(transaction, views)
    yield from _find_copies(dealings, views)


def _find_aborted_reads(transaction: Transaction, views: Views) -> Iterator[Finding]:
    for place, value, _ in transaction.writes:
        write = views.seen(place, value)
        if write is not None and (transaction.is_aborted or write.read_event < transaction.asked):
            state = "never committed" if transaction.is_aborted else "which nobody had asked to commit yet"
            what = f"{value} of transaction {transaction.name}, {state}, was read at offset {write.read_offset}"
            events = (transaction.begun, transaction.asked or transaction.ended, write.read_event)
            yield views.cases[place].finding(Violation.ABORTED_READ, write.read_offset, value, events, what)


def _find_torn_or_lost(transaction: Transaction, views: Views) -> Iterator[Finding]:
    if transaction.is_aborted:
        return
    judged = [(place, value) for place, value, _ in transaction.writes if views.is_final(place, transaction.asked)]
    if len(judged) < len(transaction.writes):
        return
    gone = [(place, value) for place, value in judged if not views.is_kept(place, value)]
    if not gone:
        return
    place, value = gone[0]
    case = views.cases[place]
    begun = case.final.begun if case.final else 0
    events = (transaction.begun, transaction.asked, transaction.ended, begun)
    was_seen = any(views.seen(at, what) is not None for at, what in judged)
    if was_seen:
        what = f"transaction {transaction.name} is seen without {len(gone)} of its {len(judged)} records, as {value}"
        yield case.finding(Violation.TORN_TRANSACTION, None, value, events, what)
    elif transaction.is_committed and views.is_final(place, transaction.ended):
        what = f"transaction {transaction.name} was committed, and the final read saw nothing of it"
        yield case.finding(Violation.LOST_TRANSACTION, None, value, events, what)


def _find_copies(dealings: Dealings, views: Views) -> Iterator[Finding]:
    """What a group makes of a record, with its position in the same transaction, appears exactly once."""
    made: dict[tuple[str, str], list[tuple[Place, str, Write]]] = {}
    for transaction in dealings.transactions.values():
        for place, value, source in transaction.writes:
            write = views.seen(place, value)
            if transaction.group is not None and source is not None and write is not None:
                made.setdefault((transaction.group, source), []).append((place, value, write))
    for (group, source), copies in made.items():
        if len(copies) > 1:
            place, value, write = copies[1]
            what = f"{len(copies)} results of {source} were committed by group {group}: {copies[0][1]} and {value}"
            events = (copies[0][2].read_event, write.read_event)
            yield views.cases[place].finding(Violation.INPUT_TWICE, write.read_offset, value, events, what)
    copying = {transaction.group for transaction in dealings.transactions.values()}
    for (group, topic, partition), share in dealings.shares.items():
        case = views.cases.get((topic, partition))
        if group not in copying or case is None or not share.looks:
            continue
        end = share.looks[-1].offset or 0
        for offset, write in sorted(case.evidence.at.items()):
            source = f"{topic}/{partition}/{offset}"
            if offset < end and offset in case.final_covers and (group, source) not in made:
                what = f"group {group} stands at {end}, and no result of {write.value} was committed"
                events = (write.read_event, share.looks[-1].answered)
                yield case.finding(Violation.INPUT_DROPPED, offset, write.value, events, what)


def find_transaction_doubts(dealings: Dealings, views: Views) -> Iterator[Reason]:
    """What the history leaves open about transactions."""
    for sentence in dealings.incomplete:
        yield Reason(Doubt.INCOMPLETE, sentence)
    for case in views.cases.values():
        for sentence in case.evidence.incomplete:
            yield Reason(Doubt.INCOMPLETE, f"{case.place}: {sentence}")
        if case.final is None and case.evidence.at:
            what = f"{case.place}: nobody read its committed records from the beginning to the end"
            yield Reason(Doubt.NO_FINAL_READ, what)
    unread = {
        place
        for transaction in dealings.transactions.values()
        for place, _, _ in transaction.writes
        if place not in views.cases
    }
    for topic, partition in sorted(unread):
        yield Reason(Doubt.NO_FINAL_READ, f"{topic}/{partition}: nobody read its committed records")


def find_view_faults(views: Views) -> Iterator[Finding]:
    """What readers of committed records were told agrees with itself, and with what everybody else was told."""
    for place, case in views.cases.items():
        for find in (find_inconsistent_offsets, find_skipped_polls, find_backward_polls):
            yield from find(case)
        everything = views.everything[place]
        for offset, write in case.evidence.at.items():
            other = everything.at.get(offset)
            if other is not None and other.value != write.value:
                what = f"offset {offset} was read as {other.value}, and as the committed {write.value}"
                events = (other.read_event, write.read_event)
                yield case.finding(Violation.INCONSISTENT_OFFSETS, offset, write.value, events, what)
        yield from _find_missing(everything, case)


def _find_missing(everything: Evidence, case: Case) -> Iterator[Finding]:
    """A record without a transaction is for readers of committed records like for all, and stays."""
    for write in everything.writes.values():
        seen = case.evidence.writes.get(write.value)
        if write.acked and write.transaction is None and case.due(write.ack_event):
            if seen is None or not case.survives(seen):
                what = f"{write.value}, acknowledged and in no transaction, is not among the committed records"
                events = (write.send_event, write.ack_event)
                yield case.finding(Violation.LOST, write.ack_offset, write.value, events, what)
        elif seen is not None and case.due(seen.read_event) and not case.survives(seen):
            what = f"{write.value} was read as committed at offset {seen.read_offset}, but the final read missed it"
            events = (write.send_event, seen.read_event)
            yield case.finding(Violation.VANISHED, seen.read_offset, write.value, events, what)

"""The nouns of a history: what clients asked of a log and what they were told, one event a line.

The order of events is evidence. A process records a `Send` before it makes the call, so a client that is
killed leaves a send of unknown outcome instead of a value from nowhere. Histories of several processes may
be joined one after the other, as long as the last read from the beginning comes last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Annotated

import msgspec

from penstock.errors import PenstockError

Offset = Annotated[int, msgspec.Meta(ge=0)]
Partition = Annotated[int, msgspec.Meta(ge=0)]


class HistoryError(PenstockError):
    """A recorded history cannot be read; says which line and why."""


class Outcome(StrEnum):
    """How a send ended. A timeout is UNKNOWN; FAIL only if the value can never appear."""

    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


class _Event(msgspec.Struct, frozen=True, gc=False, tag=str.lower, tag_field="event", forbid_unknown_fields=True):
    process: str


class Send(_Event, frozen=True, gc=False, omit_defaults=True):
    """A value is about to be sent. Values are unique in a partition; sent again, a value may stand twice.

    `producer` names one life of an idempotent producer; None says that a repeat is allowed. `source` names the
    record that the value was made of, when positions are committed in the same transaction.
    """

    topic: str
    partition: Partition
    value: str
    producer: str | None = None
    transaction: str | None = None
    source: str | None = None


class Settle(_Event, frozen=True, gc=False, omit_defaults=True):
    """A send ended. A send that is never settled has an unknown outcome."""

    topic: str
    partition: Partition
    value: str
    outcome: Outcome
    offset: Offset | None = None


class Assign(_Event, frozen=True, gc=False, omit_defaults=True):
    """A process begins to read a partition at `offset`; a seek is a new assignment.

    Offset 0 asks for the beginning, whatever the log then gives first. None: wherever the first record is.
    `committed` reads only what was committed; `group` names the group that gave the partition to the process.
    """

    assignment: int
    topic: str
    partition: Partition
    offset: Offset | None = None
    committed: bool = False
    group: str | None = None


class Poll(_Event, frozen=True, gc=False):
    """One answer to a reader: (offset, value) in the order it came."""

    assignment: int
    topic: str
    partition: Partition
    records: tuple[tuple[Offset, str], ...]


class End(_Event, frozen=True, gc=False):
    """An assignment has read all there is: `offset` is the end of the log, asked after it began."""

    assignment: int
    topic: str
    partition: Partition
    offset: Offset


class Trim(_Event, frozen=True, gc=False):
    """What stands below `offset` may be gone on purpose: DeleteRecords or retention."""

    topic: str
    partition: Partition
    offset: Offset


class Unrecorded(_Event, frozen=True, gc=False):
    """Events of this process are missing from the history from here on."""

    reason: str


class Begin(_Event, frozen=True, gc=False, omit_defaults=True):
    """A transaction begins, under a name of its own; `group`: whose positions are to be committed in it."""

    transaction: str
    group: str | None = None


class Decide(_Event, frozen=True, gc=False):
    """The end of a transaction is about to be asked for, after all its sends were acknowledged."""

    transaction: str
    commit: bool


class Ended(_Event, frozen=True, gc=False):
    """The answer to it; a transaction that nobody asked to commit is never seen."""

    transaction: str
    commit: bool
    outcome: Outcome


class Commit(_Event, frozen=True, gc=False, omit_defaults=True):
    """A group's position is about to be committed, by itself or within a transaction."""

    group: str
    topic: str
    partition: Partition
    offset: Offset
    transaction: str | None = None


class Committed(_Event, frozen=True, gc=False):
    """The answer to the last commit of this process for this partition, when it was not in a transaction."""

    group: str
    topic: str
    partition: Partition
    outcome: Outcome


class Ask(_Event, frozen=True, gc=False):
    """A process is about to ask for the positions of a group."""

    group: str


class Position(_Event, frozen=True, gc=False, omit_defaults=True):
    """One position in the answer to the last `Ask` of this process; None: there is none."""

    group: str
    topic: str
    partition: Partition
    offset: Offset | None = None


Event = (
    Send | Settle | Assign | Poll | End | Trim | Unrecorded
    | Begin | Decide | Ended | Commit | Committed | Ask | Position
)  # fmt: skip

_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """One event as a line of JSON, with its line end."""
    return _ENCODER.encode(event) + b"\n"


def decode_event(line: bytes) -> Event:
    """The event of one line; HistoryError if it is none."""
    try:
        return _DECODER.decode(line)
    except msgspec.DecodeError as error:
        raise HistoryError(str(error)) from error


def decode_history(lines: Iterable[bytes]) -> Iterator[Event]:
    """Events of a file's lines, lazily. A last line cut short becomes `Unrecorded`; other damage raises."""
    cut: HistoryError | None = None
    for number, line in enumerate(lines, start=1):
        if cut is not None:
            raise cut
        try:
            yield decode_event(line)
        except HistoryError as error:
            cut = HistoryError(f"line {number} of the history is not an event: {error}")
            if line.endswith(b"\n"):
                raise cut from error
    if cut is not None:
        yield Unrecorded("recorder", "the last line of the history was cut short")

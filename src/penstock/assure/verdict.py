"""What a check says: valid, invalid or unknown, with every broken promise and every doubt by name."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Result(StrEnum):
    """VALID is said only where everything could be checked; one violation is enough for INVALID."""

    VALID = "valid"
    INVALID = "invalid"
    UNKNOWN = "unknown"


class Violation(StrEnum):
    """The names of broken promises."""

    INCONSISTENT_OFFSETS = "inconsistent-offsets"
    DUPLICATE = "duplicate"
    LOST = "lost"
    VANISHED = "vanished"
    PHANTOM = "phantom"
    FAILED_WRITE_READ = "failed-write-read"
    ACKED_AT_OTHER_OFFSET = "acked-at-other-offset"
    REORDERED = "reordered"
    SKIPPED_POLL = "skipped-poll"
    BACKWARD_POLL = "backward-poll"
    TORN_TRANSACTION = "torn-transaction"
    LOST_TRANSACTION = "lost-transaction"
    ABORTED_READ = "aborted-read"
    INPUT_TWICE = "input-twice"
    INPUT_DROPPED = "input-dropped"
    MISSED_BY_GROUP = "missed-by-group"
    POSITION_LOST = "position-lost"
    POSITION_TAKEN_BACK = "position-taken-back"


class Doubt(StrEnum):
    """The names of reasons why a history proves nothing."""

    NO_ACKED_SEND = "no-acked-send"
    NO_FINAL_READ = "no-final-read"
    UNSEEN = "unseen"
    INCOMPLETE = "incomplete"
    GROUP_BEHIND = "group-behind"
    NO_ENDED_TRANSACTION = "no-ended-transaction"
    NO_DEED = "no-deed"


class Finding(msgspec.Struct, frozen=True):
    """One broken promise. `events` count from 1 in the history, as its lines do."""

    violation: Violation
    topic: str
    partition: int
    offset: int | None
    value: str | None
    events: tuple[int, ...]
    sentence: str


class Reason(msgspec.Struct, frozen=True):
    """Why something could not be judged."""

    doubt: Doubt
    sentence: str


class Tally(msgspec.Struct, frozen=True):
    """How much was judged. `repeated`: values at two offsets where nobody had promised otherwise."""

    events: int = 0
    partitions: int = 0
    writes: int = 0
    acked: int = 0
    failed: int = 0
    unknown: int = 0
    unknown_seen: int = 0
    offsets_read: int = 0
    repeated: int = 0
    transactions: int = 0
    committed: int = 0
    aborted: int = 0
    positions: int = 0


class Verdict(msgspec.Struct, frozen=True):
    """The outcome of a check. `findings` and `reasons` hold the first of each name, the counts hold all."""

    result: Result
    findings: tuple[Finding, ...]
    reasons: tuple[Reason, ...]
    violations: dict[Violation, int]
    doubts: dict[Doubt, int]
    tally: Tally

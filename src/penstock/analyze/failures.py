"""What an ended query died of, told apart by what must happen next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.analyze.modes import refusal
from penstock.errors import PenstockError

Kind = Literal["away", "lost", "refused", "fault"]

_AWAY = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Network|Disconnect|BrokerNotAvailable|CoordinatorNotAvailable"
    r"|LeaderNotAvailable|NotLeaderOrFollower|NotEnoughReplicas\w*|KafkaStorage|UnknownTopicOrPartition"
    r"|RetriableCommitFailed|TopicAuthorization)Exception"
    r"|Failed to (?:construct kafka consumer|update metadata)|No resolvable bootstrap urls"
    r"|Expiring \d+ record|Timeout (?:of \d+ms )?expired|not present in metadata|Connection refused"
)
_LOST = re.compile(
    r"KAFKA_DATA_LOSS|data may have been lost|OffsetOutOfRange|offset was changed from"
    r"|Partitions? .* (?:have|has) been deleted|PARTITIONS_DELETED|START_OFFSET_RESET|COULD_NOT_READ_OFFSET_RANGE"
    r"|INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS"
)
_BEGIN_ANEW = "give the query another name, or remove its checkpoint, to begin anew"
_CHANGED = re.compile(
    r"STATE_STORE_(?:KEY|VALUE)_(?:ROW_FORMAT_\w+|SCHEMA_NOT_COMPATIBLE)|STATE_STORE_\w*SCHEMA\w*INCOMPATIBLE"
    r"|STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA|STATE_STORE_INVALID_\w*SCHEMA\w*"
)
_TOKEN = re.compile(r"TokenError: ([^\n]+)")
_SAYS = re.compile(r"^(?:Caused by: )?(?:[\w.$]+(?:Exception|Error): )+", re.MULTILINE)


class AwayError(PenstockError):
    """The queue does not answer; the query waits and tries again."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a query ended."""

    kind: Kind
    reason: str


def failure_of(said: str) -> Failure:
    """The failure that Spark's exception text describes."""
    if token := _TOKEN.search(said):
        return Failure("lost", token[1])
    if _LOST.search(said):
        return Failure(
            "lost",
            "the topic no longer holds what the checkpoint points to (deleted, made anew, or older than its "
            f"retention): {_root(said)}",
        )
    if _CHANGED.search(said):
        return Failure(
            "lost",
            "the query was changed, and what it remembers does not fit it: give it another name to begin anew, "
            f"or undo the change ({_root(said)})",
        )
    if refused := refusal(said):
        return Failure("refused", refused)
    if _AWAY.search(said):
        return Failure("away", _root(said))
    return Failure("fault", _root(said))


def lost_words(
    positions: Mapping[str, Mapping[int, int]], ranges: Mapping[tuple[str, int], tuple[int, int]]
) -> str | None:
    """Why a checkpoint cannot be gone on from: the topic ends before it, or begins behind it. None if it can."""
    for topic, parts in positions.items():
        for partition, position in parts.items():
            begin, end = ranges.get((topic, partition), (0, position))
            if position > end:
                why = f"the topic ends at {end}: it was made anew, or lost its end"
            elif position < begin:
                why = f"the topic begins at {begin}: what lies between was deleted, by age or by hand"
            else:
                continue
            return f"its checkpoint is at {topic}/{partition}/{position} and {why}; {_BEGIN_ANEW}"
    return None


def _root(said: str) -> str:
    """The innermost cause in one line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by: ")] or lines[:1]
    text = _SAYS.sub("", causes[-1]) if causes else "it ended without a reason"
    return text.split(" SQLSTATE")[0][:500] or causes[-1][:500]

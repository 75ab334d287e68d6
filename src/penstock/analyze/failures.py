"""What an ended query died of, told apart by what must happen next."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.analyze.exactly_once.batch_tokens import TokenError
from penstock.analyze.modes import refusal
from penstock.analyze.python_error import PythonError, last_python_error, places_in
from penstock.analyze.result_table import TableTooLargeError
from penstock.errors import PenstockError

# away: the queue, or the task slots that it needs; it passes by itself.
Kind = Literal["away", "lost", "refused", "fault"]
_REASON_MAX = 500

_AWAY = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:Timeout|Network|Disconnect|BrokerNotAvailable|CoordinatorNotAvailable"
    r"|LeaderNotAvailable|NotLeaderOrFollower|NotEnoughReplicas\w*|KafkaStorage|UnknownTopicOrPartition"
    r"|RetriableCommitFailed|TopicAuthorization)Exception"
    r"|Failed to (?:construct kafka consumer|update metadata)|No resolvable bootstrap urls"
    r"|Expiring \d+ record|Timeout (?:of \d+ms )?expired|not present in metadata|Connection refused"
    r"|Cannot fetch record for"
)
_LOST = re.compile(
    r"KAFKA_DATA_LOSS|data may have been lost|OffsetOutOfRange|offset was changed from"
    r"|Partitions? .* (?:have|has) been deleted|PARTITIONS_DELETED|START_OFFSET_RESET|COULD_NOT_READ_OFFSET_RANGE"
    r"|INITIAL_OFFSET_NOT_FOUND_FOR_PARTITIONS"
)
_BEGIN_ANEW = "'penstock queries start QUERY --from beginning' begins again"
_CHANGED = re.compile(
    r"STATE_STORE_(?:KEY|VALUE)_(?:ROW_FORMAT_\w+|SCHEMA_NOT_COMPATIBLE)|STATE_STORE_\w*SCHEMA\w*INCOMPATIBLE"
    r"|STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA|STATE_STORE_INVALID_\w*SCHEMA\w*"
)
_SLOTS = re.compile(r"CONCURRENT_SCHEDULER_INSUFFICIENT_SLOT.* needs (\d+) concurrent .* only (\d+) are", re.DOTALL)
_CRASHED = re.compile(r"Python worker exited unexpectedly \(crashed\)(?:: (?P<how>.+))?(?P<trace>[^\0]*)")
_SAYS = re.compile(r"^(?:Caused by: )?(?:[\w.$]+(?:Exception|Error): )+", re.MULTILINE)
_JOB = re.compile(r"^Job aborted due to stage failure: .*? \(TID \d+\) \([^)]*\): ")
_PLAN = "=== Streaming Query ==="
_FRAME_OF_JAVA = re.compile(r"\s+at [\w.$/@]+[.$]<?[\w$]+>?\(|\s*\.\.\. \d+ more|Driver stacktrace")
_OF_SPARK = ("pyspark.errors.", "py4j.")  # classes that stand for an exception of Java's


class AwayError(PenstockError):
    """The queue does not answer; the query waits and tries again."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a query ended."""

    kind: Kind
    reason: str


def failure_text(error: BaseException | None) -> str:
    """All that an exception says: without the plan, and without the frames of Java."""
    if error is None:
        return ""
    if not hasattr(error, "_stackTrace"):  # Python's own
        return "".join(traceback.format_exception(error))
    told = [str(error).partition(_PLAN)[0]]
    cause: object = error
    while cause is not None:  # PySpark keeps the class names of Java only here
        told.append(str(getattr(cause, "_stackTrace", "")))
        cause = getattr(cause, "_cause", None)
    return "\n".join(line for text in told for line in text.splitlines() if not _FRAME_OF_JAVA.match(line))


def failure_of(said: str, crash_words: Callable[[], str] = str) -> Failure:
    """The failure that an exception's text describes; `crash_words` gives the last output of Python workers."""
    error = last_python_error(said)
    if error is not None and not error.name.startswith(_OF_SPARK):
        return _of_python(error)
    if _LOST.search(said):
        return Failure(
            "lost",
            "the topic no longer holds what the checkpoint points to (deleted, made anew, or older than its "
            f"retention): {_root(said)}",
        )
    if _CHANGED.search(said):
        return Failure(
            "lost",
            "the query was changed, and its state does not fit it: undo the change, or begin again with "
            f"'penstock queries start QUERY --from beginning' ({_root(said)})",
        )
    if refused := refusal(said):
        return Failure("refused", refused)
    if slots := _SLOTS.search(said):
        return Failure("away", f"it needs {slots[1]} task slots at once, and {slots[2]} are free: add Spark executors")
    if _AWAY.search(said):
        return Failure("away", _root(said))
    if crashed := _CRASHED.search(said):
        return Failure("fault", _crash_reason(crashed["how"] or "", crashed["trace"], crash_words()))
    return Failure("fault", _root(said))


def _of_python(error: PythonError) -> Failure:
    """Ours are known by their class; everything else is an error of the app."""
    if error.name == f"{AwayError.__module__}.{AwayError.__name__}":
        return Failure("away", error.message)
    if error.name in (f"{lost.__module__}.{lost.__name__}" for lost in (TokenError, TableTooLargeError)):
        return Failure("lost", error.message)
    return Failure("fault", (error.message if error.name.startswith("penstock.") else error.words)[:_REASON_MAX])


def _crash_reason(how: str, trace: str, words: str) -> str:
    """What Python's fault handler tells, the innermost line first."""
    said = "the Python worker died"
    if places := places_in(trace.splitlines()):
        said += f": {how} ({places[0]})"
    return (f"{said}; last output of Python workers: {words}" if words else said)[:_REASON_MAX]


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
    """The innermost cause that has a message, in one line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    causes = lines[:1] + [line for line in lines if line.startswith("Caused by: ")]
    texts = [_JOB.sub("", _SAYS.sub("", cause)) for cause in causes]
    found = [_SAYS.sub("", text) for text in texts if text and not text.startswith("Caused by: ")]
    return found[-1].split(" SQLSTATE")[0][:_REASON_MAX] if found else "it ended without a reason"

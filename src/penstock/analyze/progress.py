"""What Spark reports of a query, in the numbers that people and the edge ask for. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.analyze.processing import Looks, add_look

Positions = dict[str, dict[str, int]]
Batch = tuple[str, int]  # the run of a query, and the number of its batch
Written = dict[int, int]  # rows that a sink of ours wrote, by the number of their batch: Spark does not know it

_NO_WATERMARK_YET = "1970-01-01T00:00:00.000Z"
_LITTLE = 10_000  # events: a moment's work
_LETTERS_AFTER_S = 20.0  # somebody waits for the first results, for which Spark compiles; for dead letters nobody
_LETTERS_AT_LAST_S = 300.0  # however far behind the queries are


@dataclass
class Numbers:
    """The latest numbers of one query; None where nothing is known."""

    rows_in_per_s: float | None = None
    rows_out_per_s: float | None = None
    lag: int | None = None
    watermark: str | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    checkpoint_ms: int | None = None
    positions: Positions = field(default_factory=dict)
    rows_in: int = 0
    rows_in_last: int = 0  # of the last batch
    rows_out: int = 0
    commits: int = 0
    late: int | None = None  # rows that came after the watermark, and so are in no result
    batches: Looks = ()  # what the batches of the last minute took


class Movement:
    """For how long a query has had input and has got no further. Time is told, not asked for."""

    def __init__(self) -> None:
        self._mark = -1
        self._since_ms = 0

    def look(self, mark: int, now_ms: int, *, has_input: bool) -> int:
        """Milliseconds since it last moved; 0 while it has nothing to do. `mark` grows with what it has done."""
        # A start again takes the mark back to the last commit: that is no movement, and what follows is.
        if not has_input or mark > self._mark or not self._since_ms:
            self._since_ms = now_ms
        self._mark = mark
        return now_ms - self._since_ms


def batch_of(progress: Mapping[str, Any]) -> Batch:
    """The batch that a progress is about."""
    return str(progress["runId"]), int(progress["batchId"])


def unseen(recent: Sequence[Mapping[str, Any]], seen: Batch | None) -> list[Mapping[str, Any]]:
    """Those of a run's progresses that came after the last one seen; all if that was of another run."""
    found = {batch_of(progress): progress for progress in recent}
    return [progress for (run, number), progress in found.items() if seen is None or run != seen[0] or number > seen[1]]


def take_progress(numbers: Numbers, progress: Mapping[str, Any], committed_ms: int, written: int | None = None) -> None:
    """Put one progress of Spark into the numbers; `written` is what our own sink says, if it is one of ours."""
    rows_in = _count(progress.get("numInputRows")) or 0
    rows_out = _count(progress.get("sink", {}).get("numOutputRows")) if written is None else written
    seconds = (_count(progress.get("batchDuration")) or 0) / 1000
    if rows_in and seconds:
        numbers.batches = add_look(numbers.batches, committed_ms, [seconds * 1000])
    numbers.commits += 1
    numbers.rows_in += rows_in
    numbers.rows_in_last = rows_in
    numbers.rows_in_per_s = _rate(rows_in, seconds)
    if rows_out is not None:
        numbers.rows_out += rows_out
        numbers.rows_out_per_s = _rate(rows_out, seconds)
    watermark = progress.get("eventTime", {}).get("watermark")
    numbers.watermark = None if watermark == _NO_WATERMARK_YET else watermark
    stores = progress.get("stateOperators") or []
    if stores:
        numbers.state_rows = sum(_count(store.get("numRowsTotal")) or 0 for store in stores)
        late = sum(_count(store.get("numRowsDroppedByWatermark")) or 0 for store in stores)
        numbers.late = (numbers.late or 0) + late
        numbers.state_bytes = sum(_count(store.get("memoryUsedBytes")) or 0 for store in stores)
    numbers.checkpoint_ms = committed_ms
    positions = {topic: dict(parts) for topic, parts in numbers.positions.items()}
    for source in progress.get("sources") or []:
        for topic, ends in _offsets(source.get("endOffset")).items():
            positions.setdefault(topic, {}).update(ends)
    numbers.positions = positions  # as a whole: another thread reports them


def lag_behind(
    numbers: Numbers, ends: Mapping[tuple[str, int], int], reached: Mapping[tuple[str, int], int]
) -> int | None:
    """Events behind the last commit, or behind the furthest one with a result; None where nobody knows.

    A real-time query commits twice a minute: what it did since is known by its results alone, up to where it has
    `reached`. Events near there may still be under way in another task, or may have been left out for good.
    """
    lag = 0
    for (topic, partition), end in ends.items():
        committed = numbers.positions.get(topic, {}).get(str(partition))
        found = reached.get((topic, partition))
        if end and committed is None and found is None and not numbers.positions:
            return None
        lag += max(0, end - max(committed or 0, found or 0))
    return lag if ends else None


def mark_of(numbers: Numbers, reached: Mapping[tuple[str, int], int]) -> int:
    """How much a query has done, by its commits or by its results, whichever is further.

    Each commit counts, too: a real-time query does not move over the mark of a transaction behind the last record.
    """
    done = dict(reached)
    for topic, parts in numbers.positions.items():
        for partition, position in parts.items():
            place = topic, int(partition)
            done[place] = max(position, done.get(place, 0))
    return sum(done.values()) + numbers.commits


def is_caught_up(numbers: Numbers, ends: Mapping[tuple[str, int], int]) -> bool:
    """Whether next to nothing is before a query, or no more than half of what its last batch took; False if unknown."""
    lag = lag_behind(numbers, ends, {})
    left = sum(ends.values()) if lag is None else lag
    return bool(ends) and left <= max(_LITTLE, numbers.rows_in_last // 2)


def is_time_for_letters(since_s: float, *, have_all_begun: bool, is_any_behind: bool) -> bool:
    """Whether to begin to look for dead letters: that parses everything once more, so not beside who catches up."""
    if since_s >= _LETTERS_AT_LAST_S:
        return True
    return (have_all_begun or since_s >= _LETTERS_AFTER_S) and not is_any_behind


def _offsets(text: Any) -> Positions:
    found = json.loads(text) if isinstance(text, str) else text
    if not isinstance(found, Mapping):
        return {}
    return {topic: {str(part): int(offset) for part, offset in parts.items()} for topic, parts in found.items()}


def _rate(rows: int, seconds: float) -> float | None:
    return round(rows / seconds, 1) if seconds > 0 else None


def _count(number: Any) -> int | None:
    """Spark says -1 for what it does not know."""
    return int(number) if isinstance(number, int | float) and number >= 0 else None

"""Orders and pieces in which events may arrive, as a strategy of hypothesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from hypothesis import strategies as st

from penstock.guarantee import duration_ms
from penstock.plan.plan import TopicPlan
from penstock.testing.events import EPOCH, Given, as_event, event_bytes, event_time


class _Timed(NamedTuple):
    """An event, and its event time if it has one."""

    given: Given
    time: datetime | None


def arrivals_of(
    watermark: str | None,
    topics: Mapping[str, TopicPlan],
    events: Mapping[str, Sequence[Given]],
    pieces_max: int,
    repeats: bool,
) -> st.SearchStrategy[dict[str, list[list[Given]]]]:
    """Pieces for each topic, of which no event is later than the watermark.

    It shrinks to the order of event times, in one piece.
    """
    lag = None if watermark is None else timedelta(milliseconds=duration_ms(watermark) or 0)
    timed = {
        name: [
            _Timed(given, event_time(event_bytes(as_event(given), topics[name], f"{name}, row {row}"), topics[name]))
            for row, given in enumerate(of_topic, start=1)
        ]
        for name, of_topic in events.items()
    }

    @st.composite
    def arrivals(draw: st.DrawFn) -> dict[str, list[list[Given]]]:
        count = draw(st.integers(1, pieces_max))
        found = {}
        for name, of_topic in timed.items():
            again = draw(st.lists(st.sampled_from(of_topic), max_size=len(of_topic))) if repeats and of_topic else []
            left = sorted([*of_topic, *again], key=lambda each: each.time or EPOCH)
            order = []
            while left:
                order.append(left.pop(draw(st.integers(0, _choices(left, lag) - 1))))
            cuts = sorted(draw(st.lists(st.integers(0, len(order)), min_size=count - 1, max_size=count - 1)))
            edges = [0, *cuts, len(order)]
            found[name] = [[each.given for each in order[begin:end]] for begin, end in pairwise(edges)]
        return found

    return arrivals()


def _choices(left: Sequence[_Timed], lag: timedelta | None) -> int:
    """How many of the events left, in the order of their times, may arrive next without making one of them late."""
    first = next((each.time for each in left if each.time is not None), None)
    if first is None or lag is None:
        return len(left)
    return sum(each.time is None or each is left[0] or each.time < first + lag for each in left)

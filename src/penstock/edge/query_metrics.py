"""Metrics of every query, from what it reports. Pure: the time is an argument."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.config.setting import SECOND_MS
from penstock.edge.query_reasons import stalled_limit_ms
from penstock.edge.query_states import Heard
from penstock.events.query_status import SILENT, QueryState, is_silent
from penstock.metrics import family
from penstock.plan.plan import Plan

# A query of the plan is declared.
STATES = (*(state for state in QueryState if state not in (QueryState.UNDECLARED, QueryState.DROPPED)), SILENT)


def query_metric_lines(plan: Plan, last: Mapping[str, Heard], now_s: float, stalled_after_ms: int) -> Iterator[str]:
    """The Prometheus text, a line each; a query that has said nothing is `starting`, and has no numbers."""
    names = [*plan.queries, *(name for name in plan.dead_topics if name in last)]
    said = {name: last[name].said for name in names if name in last}

    def states() -> Iterator[tuple[dict[str, str], int]]:
        for name in names:
            now = state_of(last.get(name), now_s)
            for state in STATES:
                yield {"query": name, "state": state}, int(state == now)

    yield from family("penstock_query_state", "gauge", "1 for the state that a query is in, else 0.", states())
    yield from family(
        "penstock_query_lag", "gauge", "Events behind the last commit, or behind the furthest one with a result.",
        (({"query": name}, one.lag) for name, one in said.items() if one.lag is not None),
    )  # fmt: skip
    yield from family(
        "penstock_query_stalled_seconds", "gauge", "Since when a query has had input and has not moved; 0 if it moves.",
        (({"query": name}, one.stalled_ms / SECOND_MS) for name, one in said.items()),
    )  # fmt: skip
    yield from family(
        "penstock_query_stalled_limit_seconds", "gauge", "How long that may last before /ready is 503.",
        (({"query": name}, stalled_limit_ms(query, stalled_after_ms) / SECOND_MS)
         for name, query in plan.queries.items()),
    )  # fmt: skip
    yield from family(
        "penstock_query_report_age_seconds", "gauge", "How long ago a query reported last; it does so every second.",
        (({"query": name}, now_s - last[name].at_s) for name in said),
    )  # fmt: skip
    for which, help, values in (
        ("rows_in", "Rows read.", {name: one.rows_in for name, one in said.items()}),
        ("rows_out", "Rows written.", {name: one.rows_out for name, one in said.items()}),
        ("late_rows", "Rows that came after the watermark, and so are in no result.",
         {name: one.late or 0 for name, one in said.items()}),
        ("restarts", "Starts after a failure.", {name: one.restarts for name, one in said.items()}),
    ):  # fmt: skip
        yield from family(
            f"penstock_query_{which}_total", "counter", f"{help} Since the start of analyze.",
            (({"query": name}, value) for name, value in values.items()),
        )  # fmt: skip
    took = {name: one.processing_ms for name, one in said.items() if one.processing_ms is not None}
    for which, word in (("min", "Least"), ("avg", "Mean"), ("max", "Most")):
        yield from family(
            f"penstock_query_processing_{which}_seconds", "gauge",
            f"{word} processing time in the last minute with work: from the acceptance of an event to its result "
            '(of="result", sampled), or of a micro-batch where results do not keep _event (of="batch").',
            (({"query": name, "of": one.of}, getattr(one, which) / SECOND_MS) for name, one in took.items()),
        )  # fmt: skip
    yield from family(
        "penstock_dead_letters_total", "counter", "Events that did not parse, by topic. Since the start of analyze.",
        (({"topic": topic.name}, said[name].rows_out) for name, topic in plan.dead_topics.items() if name in said),
    )  # fmt: skip
    slots = [one.slots for one in said.values() if one.slots is not None]
    yield from family(
        "penstock_spark_task_slots", "gauge", "Tasks that Spark can run at once; 0 without executors.",
        (({}, value) for value in slots[-1:]),
    )  # fmt: skip


def state_of(heard: Heard | None, now_s: float) -> str:
    """The state to show: a report that is too old is no state."""
    if heard is None:
        return QueryState.STARTING
    if is_silent(heard.said, (now_s - heard.at_s) * SECOND_MS):
        return SILENT
    return heard.said.state

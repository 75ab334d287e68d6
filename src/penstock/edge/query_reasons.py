"""Why the queries of an app do not work, as far as their reports tell. Pure: the time is an argument."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath

from penstock.config.setting import SECOND_MS
from penstock.edge.query_states import Heard
from penstock.events.query_status import SILENT_AFTER_MS, QueryState
from penstock.plan.plan import Plan, QueryPlan

SILENT_AFTER_S = SILENT_AFTER_MS / SECOND_MS


def stalled_limit_ms(query: QueryPlan, stalled_after_ms: int) -> int:
    """How long a query with input may stay where it is: some queries move only when they commit."""
    return stalled_after_ms + (query.every_ms or query.commit_every_ms)


def query_reasons(
    plan: Plan, last: Mapping[str, Heard], now_s: float, *, stalled_after_ms: int, data: PurePath, master: str
) -> list[str]:
    """A sentence for each reason, with what to do. A query without input, and dead letters that wait, are none."""
    log = data / "logs" / "analyze.log"
    reasons = []
    if last and (silent_s := now_s - max(heard.at_s for heard in last.values())) > SILENT_AFTER_S:
        reasons.append(f"analyze has not reported for {silent_s:.0f} s: it is away or hangs: look at {log}")
    states = {name: heard.said.state for name, heard in last.items()}
    if late := [name for name in plan.queries if states.get(name, QueryState.STARTING) == QueryState.STARTING]:
        reasons.append(f"queries have not started yet: {', '.join(late)}: wait for Spark, or look at {log}")
    if any(heard.said.slots == 0 for heard in last.values()):
        what = "start the app again" if master.startswith("local") else f"start workers for {master}"
        reasons.append(
            f"Spark has no executors, so no query can run: {what}, or look at {data / 'analyze' / 'spark.log'}"
        )
    for name, heard in last.items():
        said, query = heard.said, plan.queries.get(name)
        why = said.reason or "it gave no reason"
        if said.state == QueryState.PARKED:
            kind = "query" if query is not None else "the query of dead letters"
            reasons.append(f"{kind} {name} is parked: {why}: remove the cause, then start the app again")
        elif query is None:
            continue
        elif said.state == QueryState.WAITING:
            reasons.append(f"query {name} waits: {why}")
        elif said.stalled_ms > stalled_limit_ms(query, stalled_after_ms):
            lag = "" if said.lag is None else f", {said.lag} events behind"
            reasons.append(
                f"query {name} has not moved for {said.stalled_ms / SECOND_MS:.0f} s{lag}: look at Spark's pages and "
                f"at {data / 'analyze' / 'spark.log'}"
            )
    return reasons

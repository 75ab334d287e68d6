"""Takes the fingerprint of a query that was built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.analyze.fingerprint.comparison import Fingerprint
from penstock.analyze.fingerprint.function_source import function_digest, text_digest, used_digest
from penstock.analyze.fingerprint.plan_text import plan_text
from penstock.plan.plan import QueryPlan

if TYPE_CHECKING:
    from penstock.analyze.query_builder import Built


def fingerprint_of(query: QueryPlan, built: Built) -> Fingerprint:
    """The fingerprint of a query."""
    plan = plan_text(built.records)
    function = query.function
    return Fingerprint(
        text=text_digest(query.sql or "") if function is None else function_digest(function),
        topics=tuple(plan.topics),
        spark=built.records.sparkSession.version,
        state=tuple(plan.state),
        columns=plan.columns,
        emit=str(built.emit.emit),
        code="" if function is None else used_digest(function, plan.functions),
    )

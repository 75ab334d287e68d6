"""Takes the fingerprint of a query that was built."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.analyze.fingerprint.comparison import Fingerprint
from penstock.analyze.fingerprint.function_source import function_digest, text_digest, used_digest
from penstock.analyze.fingerprint.plan_text import plan_text
from penstock.plan.plan import QueryPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def fingerprint_of(query: QueryPlan, records: DataFrame) -> Fingerprint:
    """The fingerprint of a query; `records` is its streaming DataFrame."""
    plan = plan_text(records)
    function = query.function
    return Fingerprint(
        text=text_digest(query.sql or "") if function is None else function_digest(function),
        topics=tuple(plan.topics),
        spark=records.sparkSession.version,
        state=tuple(plan.state),
        columns=plan.columns,
        code="" if function is None else used_digest(function, plan.functions),
    )

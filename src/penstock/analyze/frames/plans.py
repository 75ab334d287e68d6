"""Reads Spark's analyzed plan of a DataFrame: its operators, their expressions and columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WATERMARK = "spark.watermarkDelayMs"  # in the metadata of a column
TABLE_ALIAS = "penstock_table_"  # before the name of a table, where its rows come into a plan


def analyzed_plan(frame: DataFrame) -> Any:
    """The plan of a DataFrame, in which each part of a WITH stands where it is read.

    Spark does not look behind a WITH when it checks what a stream may do: it would run an aggregate of changes of
    another aggregate, whose result is wrong.
    """
    java: Any = frame
    plan = java._jdf.queryExecution().analyzed()
    if not any(name_of(node) == "WithCTE" for node in nodes(plan)):
        return plan
    jvm: Any = frame.sparkSession._jvm
    return jvm.org.apache.spark.sql.catalyst.optimizer.InlineCTE(True, False, False).apply(plan)


def nodes(plan: Any) -> Iterator[Any]:
    """Every operator of a plan, from the top."""
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += items(node.children())


def items(sequence: Any) -> list[Any]:
    """The parts of a sequence of Scala's."""
    return [sequence.apply(position) for position in range(sequence.size())]


def name_of(node: Any) -> str:
    """The name of an operator, or of an expression."""
    name: str = node.getClass().getSimpleName()
    return name


def id_of(expression: Any) -> str:
    """What tells a column from all others of a plan; the text of an expression that is no column."""
    if name_of(expression) in ("AttributeReference", "Alias"):
        return str(expression.exprId().toString())
    return str(expression.toString())


def bare(expression: Any) -> Any:
    """An expression without the name that it is given."""
    return expression.child() if name_of(expression) == "Alias" else expression


def has_watermark(expression: Any) -> bool:
    """Whether Spark drops rows by this column."""
    return name_of(expression) == "AttributeReference" and bool(expression.metadata().contains(WATERMARK))


def is_window(expression: Any) -> bool:
    """Whether this is a window of time, and no other column."""
    kind = expression.dataType()
    return kind.typeName() == "struct" and {"start", "end"} == set(kind.fieldNames())

"""What a row of a result means, from Spark's own plan: its kind, and the columns that say which row it replaces."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.analyze.frames.plans import analyzed_plan, bare, id_of, items, name_of, nodes
from penstock.plan.policies import Emit

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Operators with one input that keep the attributes of that input.
_PASSING = (
    "Filter",
    "SubqueryAlias",
    "EventTimeWatermark",
    "View",
    "ResolvedHint",
    "Sort",
    "GlobalLimit",
    "LocalLimit",
)
_GROUPING = ("Aggregate", "Distinct")
_IN_PYTHON = ("FlatMapGroupsInPandasWithState", "TransformWithStateInPySpark")
RANK = "rank"


class Kind(StrEnum):
    """What a row does to the rows before it. The value is that of the header `penstock-kind`."""

    UPSERT = "upsert"  # it replaces the row with the same key
    FINAL = "final"  # no other row has its key, and it does not change any more
    APPEND = "append"  # it stands beside all others


class KeyColumn(NamedTuple):
    """A column of a key, or the start of the window that is in it."""

    name: str
    is_window: bool = False

    def __str__(self) -> str:
        return f"{self.name}.start" if self.is_window else self.name


class Meaning(NamedTuple):
    """The kind of a query's rows, and the columns of their key.

    A key without columns is that of the one row of an aggregate without groups. `key` is None where rows have no key:
    nothing is known that would keep the changes of a row in one partition; `no_key` says why.
    """

    kind: Kind
    key: tuple[KeyColumn, ...] | None
    is_declared: bool = False  # the topic of the result decides the key
    is_ranked: bool = False  # the key has the windows alone, and behind them the rank, which the sink counts
    no_key: str = ""
    uncovered: tuple[str, ...] = ()  # groups that the declared key does not tell apart

    @property
    def remarks(self) -> tuple[str, ...]:
        """What an app should know of the key."""
        return (self.remark,) if self.uncovered else ()

    @property
    def remark(self) -> str:
        """The groups that share a key."""
        return f"the key= of its topic leaves out {', '.join(self.uncovered)}: rows of several groups share a key"

    @property
    def key_names(self) -> tuple[str, ...]:
        """The parts of the key, as the header `penstock-key-columns` names them."""
        return (*map(str, self.key or ()), *((RANK,) if self.is_ranked else ()))

    @property
    def text(self) -> str:
        """'upsert by card, hour', as `--dry-run` shows it."""
        if self.key_names:
            return f"{self.kind} by {', '.join(self.key_names)}"
        if self.kind is Kind.APPEND:
            return str(self.kind)
        if self.key is None:
            return f"{self.kind} without a key: {self.no_key}"
        return f"{self.kind} of one row"


class _Source(NamedTuple):
    """What an output column is: an attribute of the operator below, or a field inside of it."""

    attribute: str
    fields: tuple[str, ...] = ()


class _NoKeyError(Exception):
    """Why the columns that rows are grouped by cannot be named."""


def meaning_of(result: DataFrame, declared: tuple[str, ...], emit: Emit = Emit.CHANGES) -> Meaning:
    """The meaning of a result; `declared` is the key of its topic, which decides where there is one."""
    plan = analyzed_plan(result)
    key = tuple(map(KeyColumn, declared)) or None
    if not any(_has(plan, name) for name in _GROUPING):
        kind = Kind.UPSERT if key is not None and _replaces_rows(plan) else Kind.APPEND
        return Meaning(kind, key, is_declared=True)
    kind = Kind.FINAL if emit is Emit.FINAL else Kind.UPSERT
    groups, why = None, ""
    try:
        groups = _grouping(plan, result.columns)
    except _NoKeyError as error:
        why = str(error)
    if key is not None:
        uncovered = tuple(str(part) for part in groups or () if part.name not in declared)
        # Rows of several groups have one key: none of them is the only one.
        kind = Kind.APPEND if uncovered and kind is Kind.FINAL else kind
        return Meaning(kind, key, is_declared=True, uncovered=uncovered)
    if emit is Emit.ALL and _is_top(plan):
        return Meaning(kind, tuple(part for part in groups or () if part.is_window), is_ranked=True)
    return Meaning(kind, groups) if groups is not None else Meaning(kind, None, no_key=why)


def _has(plan: Any, name: str) -> bool:
    return any(name_of(node) == name for node in nodes(plan))


def _replaces_rows(plan: Any) -> bool:
    """Whether Python with state writes the rows, and says that they replace others."""
    return any(name_of(node) in _IN_PYTHON and str(node.outputMode()) == "Update" for node in nodes(plan))


def _is_top(plan: Any) -> bool:
    """Whether the rows of a result have ranks: ORDER BY with LIMIT."""
    node, is_limited = plan, False
    while (name := name_of(node)) != "Sort":
        is_limited = is_limited or name == "GlobalLimit"
        children = items(node.children())
        if len(children) != 1 or name in _GROUPING:
            return False
        (node,) = children
    return is_limited


def _grouping(plan: Any, columns: list[str]) -> tuple[KeyColumn, ...]:
    """The columns that hold what the topmost aggregate groups by; _NoKeyError if they cannot be named."""
    sources = dict(zip(columns, map(_Source, map(id_of, items(plan.output()))), strict=True))
    positions: list[KeyColumn] = []  # within what a generator made of one row
    node = plan
    while (name := name_of(node)) not in _GROUPING:
        below = items(node.children())
        if name == "Project":
            sources = _through(sources, items(node.projectList()))
        elif name == "Generate":
            positions.append(_position(node, sources))
        elif name not in _PASSING:
            raise _NoKeyError(f"rows of a {name.lower()} have no groups of their own: give its topic key=")
        (node,) = below
    if name == "Distinct":
        return tuple(map(KeyColumn, columns))
    return tuple(dict.fromkeys([*_groups(node, sources), *positions]))


def _groups(aggregate: Any, sources: dict[str, _Source]) -> Iterator[KeyColumn]:
    made = {id_of(expression): bare(expression) for expression in items(aggregate.aggregateExpressions())}
    for group in map(bare, items(aggregate.groupingExpressions())):
        column = next(filter(None, (_key_column(*each, made, group) for each in sources.items())), None)
        if column is None:
            raise _NoKeyError("select every column that the query groups by")
        yield column


def _position(generate: Any, sources: dict[str, _Source]) -> KeyColumn:
    """The column with the place of a row among those that a generator made of one row."""
    if name_of(generate.generator()) == "PosExplode":
        place = id_of(items(generate.generatorOutput())[0])
        for column, source in sources.items():
            if source == _Source(place):
                return KeyColumn(column)
    raise _NoKeyError("select the position of posexplode, or give its topic key=")


def _through(sources: dict[str, _Source], projected: list[Any]) -> dict[str, _Source]:
    """The same columns, as attributes of the operator below a projection; computed ones are left out."""
    made = {id_of(expression): expression for expression in projected}
    below = {}
    for name, source in sources.items():
        expression = made.get(source.attribute)
        inner = None if expression is None else bare(expression)
        fields = source.fields
        while inner is not None and name_of(inner) == "GetStructField":
            fields = (_field(inner), *fields)
            inner = inner.child()
        if inner is not None and name_of(inner) == "AttributeReference":
            below[name] = _Source(id_of(inner), fields)
    return below


def _key_column(column: str, source: _Source, made: dict[str, Any], group: Any) -> KeyColumn | None:
    """The column, if it holds this grouping expression; one boundary of a window stands for the window."""
    expression = made.get(source.attribute)
    fields = source.fields
    while expression is not None and not expression.semanticEquals(group) and name_of(expression) == "GetStructField":
        fields = (_field(expression), *fields)
        expression = expression.child()
    if expression is None or not expression.semanticEquals(group):
        return None
    if group.dataType().typeName() != "struct":
        return None if fields else KeyColumn(column)
    is_window = {"start", "end"} <= set(group.dataType().fieldNames())
    if not fields:
        return KeyColumn(column, is_window)
    return KeyColumn(column) if is_window and fields in (("start",), ("end",)) else None


def _field(expression: Any) -> str:
    return str(expression.childSchema().fields()[expression.ordinal()].name())

"""What a row of a result means, from Spark's own plan: its kind, and the columns that say which row it replaces."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Operators with one input that keep the attributes of that input.
_PASSING = ("Filter", "SubqueryAlias", "EventTimeWatermark", "View", "ResolvedHint", "Sort")


class Kind(StrEnum):
    """What a row does to the rows before it. The value is that of the header `penstock-kind`."""

    UPSERT = "upsert"  # it replaces the row with the same key
    APPEND = "append"  # it stands beside all others


class KeyColumn(NamedTuple):
    """A column of a key, or the start of the window that is in it."""

    name: str
    is_window: bool = False

    def __str__(self) -> str:
        return f"{self.name}.start" if self.is_window else self.name


class Meaning(NamedTuple):
    """The kind of a query's rows, and the columns of their key.

    An upsert whose key has no columns is the one row of an aggregate without groups. `key` is None where rows have no
    key: nothing is known that would keep the changes of a row in one partition.
    """

    kind: Kind
    key: tuple[KeyColumn, ...] | None
    is_declared: bool = False  # the topic of the result decides the key

    @property
    def text(self) -> str:
        """'upsert by card, hour', as `--dry-run` shows it."""
        if self.key:
            return f"{self.kind} by {', '.join(map(str, self.key))}"
        if self.kind is Kind.APPEND:
            return str(self.kind)
        if self.key is None:
            return f"{self.kind} without a key: select every column that the query groups by"
        return f"{self.kind} of one row"


class _Source(NamedTuple):
    """What an output column is: an attribute of the operator below, or a field inside of it."""

    attribute: str
    fields: tuple[str, ...] = ()


def meaning_of(result: DataFrame, declared: tuple[str, ...]) -> Meaning:
    """The meaning of a result in update mode; `declared` is the key of its topic, which decides where there is one."""
    frame: Any = result
    plan = frame._jdf.queryExecution().analyzed()
    key = tuple(map(KeyColumn, declared)) or None
    if not _has(plan, "Aggregate"):
        return Meaning(Kind.APPEND, key, is_declared=True)
    if key is not None:
        return Meaning(Kind.UPSERT, key, is_declared=True)
    return Meaning(Kind.UPSERT, _grouping(plan, result.columns))


def _has(plan: Any, name: str) -> bool:
    waiting = [plan]
    while waiting:
        node = waiting.pop()
        if _name(node) == name:
            return True
        waiting += _items(node.children())
    return False


def _grouping(plan: Any, columns: list[str]) -> tuple[KeyColumn, ...] | None:
    """The columns that hold what the topmost aggregate groups by; None if one of them is missing in the result."""
    output = _items(plan.output())
    sources: dict[str, _Source] = {
        name: _Source(_id(attribute)) for name, attribute in zip(columns, output, strict=True)
    }
    node = plan
    while (name := _name(node)) != "Aggregate":
        if name == "Project":
            sources = _through(sources, _items(node.projectList()))
        elif name not in _PASSING:
            return None
        (node,) = _items(node.children())
    made = {_id(expression): _inner(expression) for expression in _items(node.aggregateExpressions())}
    found: list[KeyColumn] = []
    for group in _items(node.groupingExpressions()):
        group = _inner(group)
        column = next(filter(None, (_key_column(*each, made, group) for each in sources.items())), None)
        if column is None:
            return None
        found.append(column)
    return tuple(dict.fromkeys(found))


def _through(sources: dict[str, _Source], projected: list[Any]) -> dict[str, _Source]:
    """The same columns, as attributes of the operator below a projection; computed ones are left out."""
    made = {_id(expression): expression for expression in projected}
    below = {}
    for name, source in sources.items():
        expression = made.get(source.attribute)
        inner = None if expression is None else _inner(expression)
        fields = source.fields
        while inner is not None and _name(inner) == "GetStructField":
            fields = (_field(inner), *fields)
            inner = inner.child()
        if inner is not None and _name(inner) == "AttributeReference":
            below[name] = _Source(_id(inner), fields)
    return below


def _key_column(column: str, source: _Source, made: dict[str, Any], group: Any) -> KeyColumn | None:
    """The column, if it holds this grouping expression; one boundary of a window stands for the window."""
    expression = made.get(source.attribute)
    fields = source.fields
    while expression is not None and not expression.semanticEquals(group) and _name(expression) == "GetStructField":
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


def _name(node: Any) -> str:
    name: str = node.getClass().getSimpleName()
    return name


def _items(sequence: Any) -> list[Any]:
    return [sequence.apply(position) for position in range(sequence.size())]


def _id(expression: Any) -> str:
    if _name(expression) in ("AttributeReference", "Alias"):
        return str(expression.exprId().toString())
    return str(expression.toString())


def _inner(expression: Any) -> Any:
    return expression.child() if _name(expression) == "Alias" else expression


def _field(expression: Any) -> str:
    return str(expression.childSchema().fields()[expression.ordinal()].name())

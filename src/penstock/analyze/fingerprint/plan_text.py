"""The stateful part of a query's plan as text that is the same in every run and on every machine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.analyze.frames.plans import TABLE_ALIAS, items, name_of, nodes
from penstock.analyze.frames.rows import PARSED
from penstock.analyze.modes import STATEFUL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_STATEFUL = {*STATEFUL, "Distinct", "GlobalLimit", "LocalLimit"}
_NO_WORDS = {"SubqueryAlias", "View", "CTERelationDef"}  # names of tables, and lists of all their columns
_FIELDS_MAX = 100_000  # Spark cuts longer lists
_ATTRIBUTE = re.compile(r"#(\d+)L?")
_NOT_STABLE = (
    (_ATTRIBUTE, ""),  # an attribute's id
    (re.compile(r"@[0-9a-f]{5,}"), ""),  # an object's address
    (re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}, "), ""),  # the id of a watermark
    (re.compile(r"lambda (\w+?)_\d+"), r"lambda \1"),  # PySpark counts the variables of lambdas
    (re.compile(r"\b(rand|randn|uuid|shuffle)\((?:Some\()?-?\d*\)?\)"), r"\1()"),  # a seed
)
_TOPIC = re.compile(r"subscribe=([^,\]]+)")


@dataclass
class PlanText:
    """What a checkpoint depends on in a plan."""

    state: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)  # names of the Python functions in the stateful part


def plan_text(frame: DataFrame) -> PlanText:
    """The stateful part of a streaming DataFrame, its topics, and the columns and Python functions in that part."""
    any_frame: Any = frame
    return _Reader(any_frame._jdf.queryExecution().analyzed()).found


class _Reader:
    """One walk through a plan."""

    def __init__(self, plan: Any) -> None:
        self.found = PlanText()
        self._cte = {node.id(): node for node in nodes(plan) if name_of(node) == "CTERelationDef"}
        self._columns: dict[str, tuple[str, str]] = {}  # TOPIC.COLUMN and type, by the id of the attribute
        self._used: set[str] = set()
        self._used_above: set[str] = set()
        self._keeps_rows = False
        self._read(plan, depth=-1)
        used = self._used | self._used_above if self._keeps_rows else self._used
        self.found.columns = dict(sorted(self._columns[id] for id in used if id in self._columns))

    def _read(self, node: Any, depth: int) -> None:
        """`depth` is that below the first stateful operator, -1 above it."""
        name = name_of(node)
        if name == "CTERelationRef" and (definition := self._cte.get(node.cteId())) is not None:
            self._read_children(definition, depth)
            return
        if name == "WithCTE":
            self._read(node.plan(), depth)
            return
        if name == "Join" and sum(child.isStreaming() for child in items(node.children())) > 1:
            self._keeps_rows, depth = True, max(depth, 0)  # its state has each column that is used above it
        elif name in _STATEFUL and node.isStreaming():
            depth = max(depth, 0)
        texts = _texts(node, name)
        if name == "Project" and any(f"{PARSED}#" in text for text in texts):
            self._read_topic(node, depth)
            return
        if name == "SubqueryAlias" and node.alias().startswith(TABLE_ALIAS):
            self._read_table(node, depth)
            return
        if name in _NO_WORDS:
            self._read_children(node, depth)
            return
        used = self._used if depth >= 0 else self._used_above
        used.update(id for text in texts for id in _ATTRIBUTE.findall(text))
        if depth >= 0:
            self.found.state.append("  " * depth + _stable(f"{name} {', '.join(texts)}"))
            self.found.functions.update(_python_functions(node))
            depth += 1
        self._read_children(node, depth)

    def _read_children(self, node: Any, depth: int) -> None:
        for child in items(node.children()):
            self._read(child, depth)

    def _read_topic(self, node: Any, depth: int) -> None:
        """The rows of a topic: what makes them is ours."""
        topic = (_TOPIC.findall(node.treeString()) or ["?"])[0]
        self.found.topics.append(topic)
        for column in items(node.output()):
            self._columns[str(column.exprId().id())] = f"{topic}.{column.name()}", column.dataType().sql()
        if depth >= 0:
            self.found.state.append("  " * depth + f"topic {topic}")

    def _read_table(self, node: Any, depth: int) -> None:
        """The rows of a table: which ones they are, and from what they are read, makes no other query."""
        table = node.alias().removeprefix(TABLE_ALIAS)
        for column in items(node.output()):
            self._columns[str(column.exprId().id())] = f"{table}.{column.name()}", column.dataType().sql()
        if depth >= 0:
            self.found.state.append("  " * depth + f"table {table}")


def _texts(node: Any, name: str) -> list[str]:
    """What an operator says; of a projection without the columns that it hands on as they are."""
    if name != "Project":
        text: str = node.simpleString(_FIELDS_MAX)
        return [text.removeprefix("~").removeprefix(name).strip()]  # ~: it is streaming
    made = [item for item in items(node.projectList()) if item.getClass().getSimpleName() != "AttributeReference"]
    return [item.toString() for item in made]


def _python_functions(node: Any) -> Iterator[str]:
    waiting = items(node.expressions())
    while waiting:
        expression = waiting.pop()
        if expression.getClass().getSimpleName().startswith("Python"):
            yield expression.name()
        waiting += items(expression.children())


def _stable(text: str) -> str:
    for pattern, words in _NOT_STABLE:
        text = pattern.sub(words, text)
    return text

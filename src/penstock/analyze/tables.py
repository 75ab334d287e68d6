"""The tables of an app as Spark reads them: each is copied as a whole, and queries join the copy until the next one."""

from __future__ import annotations

import glob
import os
import shutil
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F

from penstock.analyze.failures import failure_of, failure_text
from penstock.analyze.frames.plans import TABLE_ALIAS
from penstock.analyze.frames.spark_types import column_words
from penstock.errors import PenstockError
from penstock.plan.plan import QueryPlan
from penstock.plan.tables import TableFormat, TablePlan
from penstock.process.run_spec_file import write_private

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AGAIN_S = 10.0  # after a read that failed, where the period of the table is longer
# A broken line ends the read. A header that is not as the schema says ends it, too: the file is another one.
_READER = {
    TableFormat.CSV: {"mode": "FAILFAST", "header": "true", "enforceSchema": "false"},
    TableFormat.JSON: {"mode": "FAILFAST"},
    TableFormat.PARQUET: {},
    TableFormat.JDBC: {},
}


class TableError(PenstockError):
    """A table cannot be read; the message says why, without secrets of its options."""


class Copy(msgspec.Struct, frozen=True):
    """A copy of a table: where it is, and what it is a copy of."""

    number: int
    declared: str  # digest of the declaration
    files: str  # digest of names, sizes and times of its files; empty where that is not known
    rows: str  # count and digest of its rows
    columns: str


class News(NamedTuple):
    """What became of a table when it was read again."""

    table: str
    line: str
    is_changed: bool


class Tables:
    """The copies of all tables. A thread of its own reads tables again; all else is the conductor's."""

    def __init__(self, tables: Mapping[str, TablePlan], folder: Path, spark: SparkSession) -> None:
        """`folder` keeps the copies over starts."""
        self._tables = tables
        self._folder = folder
        self._spark = spark
        self._copies: dict[str, Copy] = {}
        self._held: dict[str, dict[str, Copy]] = {}  # by query and table: what its DataFrame reads
        self._news: deque[News] = deque()
        self._lock = threading.Lock()
        self.faults: dict[str, str] = {}  # why a table keeps its old rows

    def frames(self, query: QueryPlan, session: SparkSession) -> dict[str, DataFrame]:
        """The newest copies of the tables that a query joins; TableError if one has none."""
        for name in query.tables:
            if name not in self._copies:
                self._read_first(self._tables[name])
        with self._lock:
            self._held[query.name] = {name: self._copies[name] for name in query.tables}
        return self.held_frames(query, session)

    def held_frames(self, query: QueryPlan, session: SparkSession) -> dict[str, DataFrame]:
        """The copies that a query was given last."""
        return {name: self._frame(name, copy, session) for name, copy in self._held.get(query.name, {}).items()}

    def is_newest(self, query: str) -> bool:
        """Whether a query has the newest copies of its tables."""
        return all(self._copies[name] == copy for name, copy in self._held.get(query, {}).items())

    def news(self) -> Iterator[News]:
        """What became of tables since this was last asked."""
        while self._news:
            yield self._news.popleft()

    def start(self, stopping: threading.Event) -> None:
        """Read tables again, each after its period, until `stopping`."""
        if any(self._tables[name].every_ms for name in self._copies):
            threading.Thread(target=self._read_again, args=(stopping,), name="tables", daemon=True).start()

    def _read_again(self, stopping: threading.Event) -> None:
        periods_s = {name: ms / 1_000 for name in self._copies if (ms := self._tables[name].every_ms)}
        due_s = {name: monotonic() + self._pause_s(name, period_s) for name, period_s in periods_s.items()}
        while not stopping.wait(max(0.0, min(due_s.values()) - monotonic())):
            name = min(due_s, key=lambda name: due_s[name])
            self._renew(name, stopping)
            due_s[name] = monotonic() + self._pause_s(name, periods_s[name])

    def _pause_s(self, name: str, period_s: float) -> float:
        return min(period_s, _AGAIN_S) if name in self.faults else period_s

    def _renew(self, name: str, stopping: threading.Event) -> None:
        before = self._copies[name]
        try:
            copy = self._read(self._tables[name], before)
        except TableError as error:
            if not stopping.is_set():
                self._keep_old(name, str(error))
            return
        had_fault = self.faults.pop(name, None) is not None
        if copy.number != before.number or had_fault:
            what = "has other rows" if copy.number != before.number else "has the same rows"
            self._news.append(News(name, f"table {name} was read again, and {what}", copy.number != before.number))

    def _keep_old(self, name: str, why: str) -> None:
        fault = f"table {name} keeps its old rows: {why}"
        if self.faults.get(name) != fault:
            self.faults[name] = fault
            self._news.append(News(name, fault, False))

    def _read_first(self, table: TablePlan) -> None:
        """Read a table at the start; if that fails, its copy of the last run serves."""
        kept = self._kept(table)
        try:
            self._read(table, kept, is_first=True)  # the disk may have lost what was not synced
        except TableError as error:
            if kept is None:
                raise TableError(f"table {table.name}: {error}") from error
            self._copies[table.name] = kept
            self._keep_old(table.name, str(error))

    def _read(self, table: TablePlan, before: Copy | None, *, is_first: bool = False) -> Copy:
        """A copy of a table as it is now, or `before` if its rows are the same; TableError if it cannot be read."""
        files = _files_digest(table)
        if before is not None and files and files == before.files and not is_first:
            self._use(table.name, before)
            return before
        number = 1 if before is None else before.number + 1
        path = self._folder / table.name / str(number)
        try:
            shutil.rmtree(path, ignore_errors=True)
            session = self._spark.newSession()
            _source(table, session).write.option("compression", "uncompressed").parquet(str(path))
            rows, columns = _digest_of(session.read.parquet(str(path)), table)
        except TableError:
            raise
        except Exception as error:  # Spark's, py4j's, a driver's: whatever it is, the query goes on with what it has
            raise TableError(table.without_secrets(failure_of(failure_text(error)).reason)) from error
        if _files_digest(table) != files:
            raise TableError("its files changed while they were read")
        if before is not None and before.columns != columns and not is_first:
            raise TableError(f"its columns were {before.columns} and are {columns}: start the app again")
        if before is not None and before.rows == rows and not is_first:
            number = before.number
        copy = Copy(number, _declared_digest(table), files, rows, columns)
        self._use(table.name, copy)
        return copy

    def _use(self, name: str, copy: Copy) -> None:
        """Make a copy the newest one, and remove those that no query has."""
        folder = self._folder / name
        part = folder / "copy.json.part"
        write_private(part, msgspec.json.encode(copy))  # the digest is also of passwords
        os.replace(part, folder / "copy.json")
        with self._lock:
            self._copies[name] = copy
            used = {str(copy.number), *(str(held[name].number) for held in self._held.values() if name in held)}
        for entry in os.scandir(folder):
            if entry.is_dir() and entry.name not in used:
                shutil.rmtree(entry.path, ignore_errors=True)

    def _kept(self, table: TablePlan) -> Copy | None:
        """The copy of the last run, if it is whole and the declaration is still the same."""
        try:
            kept = msgspec.json.decode((self._folder / table.name / "copy.json").read_bytes(), type=Copy)
            if kept.declared != _declared_digest(table):
                return None
            found = _digest_of(self._spark.newSession().read.parquet(str(self._path(table.name, kept))), table)
        except (OSError, msgspec.MsgspecError, PySparkException, Py4JError, TableError):
            return None
        return kept if found == (kept.rows, kept.columns) else None

    def _frame(self, name: str, copy: Copy, session: SparkSession) -> DataFrame:
        return session.read.parquet(str(self._path(name, copy))).alias(f"{TABLE_ALIAS}{name}")

    def _path(self, name: str, copy: Copy) -> Path:
        return self._folder / name / str(copy.number)


def _source(table: TablePlan, session: SparkSession) -> DataFrame:
    """The table where it is; TableError if there is no such file."""
    if _is_here(table) and not glob.glob(table.path or ""):
        raise TableError(f"there is no file {table.path}")
    reader = session.read.format(table.format).options(**{**_READER[table.format], **table.options})
    if table.format is TableFormat.JDBC:
        rows = reader.load()
        if table.schema is not None:
            words = column_words(table.schema.columns)
            wanted = session.createDataFrame([], words).schema
            rows = rows.select(*(F.col(column.name).cast(column.dataType) for column in wanted.fields))
        return rows
    if table.schema is not None:
        reader = reader.schema(column_words(table.schema.columns))
    return reader.load(table.path)


def _digest_of(rows: DataFrame, table: TablePlan) -> tuple[str, str]:
    """A text that is another one for other rows, in whatever order, and the columns; TableError if a value lacks."""
    # Hashes are added, not combined by xor: two equal rows must not cancel out.
    text = F.to_json(F.struct("*"), {"ignoreNullFields": "false"})
    sums: list[Any] = [F.sum(F.xxhash64(text).cast("decimal(38,0)")), F.sum(F.xxhash64(text, F.lit(1)) % 2**31)]
    required = table.schema.required if table.schema else []
    missing = [F.count_if(F.col(name).isNull()) for name in required]
    count, first, second, *nulls = rows.agg(F.count("*"), *sums, *missing).collect()[0]
    for name, lacking in zip(required, nulls, strict=True):
        if lacking:
            raise TableError(f"column {name} is NOT NULL, and {lacking} row{'s lack' if lacking > 1 else ' lacks'} it")
    return f"{count} {first} {second}", rows.schema.simpleString()


def _files_digest(table: TablePlan) -> str:
    """Names, sizes and times of the files of a table; empty for what is not in this machine's files."""
    if not _is_here(table):
        return ""
    found = []
    for top in sorted(glob.glob(table.path or "")):
        below = Path(top).rglob("*") if Path(top).is_dir() else [Path(top)]
        for path in sorted(below):
            try:
                stat = path.stat()
            except OSError:
                continue  # it was removed in between: the next look sees that
            if path.is_file():
                found.append(f"{path} {stat.st_size} {stat.st_mtime_ns} {stat.st_ino}")
    return _digest(found)


def _is_here(table: TablePlan) -> bool:
    return table.path is not None and "://" not in table.path


def _declared_digest(table: TablePlan) -> str:
    schema = table.schema.ddl if table.schema else ""
    options = [f"{name}={value}" for name, value in sorted(table.options.items())]
    return _digest([table.format, table.path or "", schema, *options])


def _digest(texts: list[str]) -> str:
    return sha256("\0".join(texts).encode()).hexdigest()

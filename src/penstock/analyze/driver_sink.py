"""Writes the results of a query from the driver, at least once: all rows, or the changes to the batch before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.analyze.frames.results import with_flat_headers
from penstock.analyze.result_table import ROWS_MAX, ResultTable, Row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.analyze.checkpoints import Checkpoint
    from penstock.analyze.progress import Written
    from penstock.analyze.query_builder import Built
    from penstock.analyze.record_writer import RecordWriter


class TableRows:
    """Compares the batches of Spark with what readers have."""

    def __init__(self, file: Path, built: Built, topic: str = "") -> None:
        """`topic` is as in ResultTable."""
        self._table = ResultTable(file, topic, built.tombstone_headers)
        self._is_ranked = built.meaning.is_ranked

    def changes(self, batch: DataFrame, headers: Sequence[str]) -> list[Row]:
        """What differs from the batch before; TableTooLargeError if the result has too many rows."""
        rows = with_flat_headers(batch, headers).take(ROWS_MAX + 1)
        return self._table.changes(((row[0], row[1], row[2:]) for row in rows), self._is_ranked)

    def begin(self) -> None:
        """The last changes are about to be written."""
        self._table.begin()

    def save(self) -> None:
        """The queue has the last changes."""
        self._table.save()


class DriverSink:
    """The writer of one query without transactions, where Spark's own sink does not do."""

    def __init__(
        self,
        writer: RecordWriter,
        checkpoint: Checkpoint,
        written: Written,
        headers: Sequence[str],
        table: TableRows | None,
    ) -> None:
        """With a `table`, a batch is the whole result, and only its changes are written."""
        self._writer = writer
        self._checkpoint = checkpoint
        self._written = written
        self._headers = headers
        self._table = table

    def write(self, batch: DataFrame, number: int) -> None:
        """Write a batch; it counts as done only when the queue has all of it."""
        if self._table is None:
            found = with_flat_headers(batch, self._headers).toLocalIterator()
            rows: Iterable[Row] = ((row[0], row[1], row[2:]) for row in found)
        else:
            rows = self._table.changes(batch, self._headers)
        self._checkpoint.sync()  # else a power cut could make another batch of this number
        if self._table is not None:
            self._table.begin()
        self._written[number] = self._writer.write(
            (key, value, [(n, bytes(v)) for n, v in zip(self._headers, values, strict=True) if v is not None])
            for key, value, values in rows
        )
        if self._table is not None:
            self._table.save()

"""The whole result of a query after each batch becomes the changes to the batch before."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.analyze import result_table
from penstock.analyze.result_table import ResultTable, Row, TableTooLargeError
from penstock.errors import PenstockError


def rows(**values: str) -> list[Row]:
    return [(key.encode(), value.encode(), (b"q",)) for key, value in values.items()]


def written(table: ResultTable, *given: Row) -> list[Row]:
    """The changes of a batch that the queue has."""
    changes = table.changes(given, False)
    table.begin()
    table.save()
    return changes


def test_only_what_differs_is_written_and_what_left_has_a_tombstone(tmp_path: Path) -> None:
    table = ResultTable(tmp_path / "top.table", "top", (None, b"q"))
    assert written(table, *rows(a="1", b="2")) == rows(a="1", b="2")
    assert written(table, *rows(a="1", c="3")) == [*rows(c="3"), (b"b", None, (None, b"q"))]
    assert written(table) == [(b"a", None, (None, b"q")), (b"c", None, (None, b"q"))]
    assert written(table) == []


@pytest.mark.parametrize("has_begun", [False, True])
def test_a_crash_before_the_rows_are_kept_writes_them_again(tmp_path: Path, has_begun: bool) -> None:
    file = tmp_path / "top.table"
    written(table := ResultTable(file), *rows(a="1", b="2"))
    assert table.changes(rows(a="1", b="3", c="4"), False) == rows(b="3", c="4")
    if has_begun:
        table.begin()
    assert ResultTable(file).changes(rows(a="1", b="3", c="4"), False) == rows(b="3", c="4")


def test_another_result_after_a_crash_repairs_what_was_written(tmp_path: Path) -> None:
    """As after an order to start again: what readers may have of the lost batch is overwritten or deleted."""
    file = tmp_path / "top.table"
    written(table := ResultTable(file), *rows(a="1", b="2"))
    table.changes(rows(a="9", b="2", c="4"), False)
    table.begin()
    assert ResultTable(file).changes(rows(a="1", b="2"), False) == [*rows(a="1"), (b"c", None, ())]


def test_another_topic_gets_the_whole_result(tmp_path: Path) -> None:
    file = tmp_path / "top.table"
    written(ResultTable(file, "top id-1"), *rows(a="1"))
    assert ResultTable(file, "top id-1").changes(rows(a="1"), False) == []
    assert ResultTable(file, "top id-2").changes(rows(a="1"), False) == rows(a="1")


def test_a_rank_is_counted_within_each_key(tmp_path: Path) -> None:
    found = ResultTable(tmp_path / "top.table").changes(
        [(None, b"x", ()), (None, b"y", ()), (b"noon", b"x", ()), (b"noon", b"z", ())], True
    )
    assert [key for key, _, _ in found] == [b"1", b"2", b"noon|1", b"noon|2"]


def test_two_rows_with_one_key_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match="two rows of the result have the key 'a'"):
        ResultTable(tmp_path / "top.table").changes([*rows(a="1"), *rows(a="2")], False)


def test_a_result_with_too_many_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_table, "ROWS_MAX", 1)
    with pytest.raises(TableTooLargeError, match=r"more than 1 rows.*emit='changes'"):
        ResultTable(tmp_path / "top.table").changes(rows(a="1", b="2"), False)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "top.table").write_bytes(b"\xc1")
    with pytest.raises(PenstockError, match=r"top\.table is damaged"):
        ResultTable(tmp_path / "top.table").changes(rows(a="1"), False)

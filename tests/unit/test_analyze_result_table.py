"""The whole result of a query after each batch becomes the changes to the batch before."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.analyze import result_table
from penstock.analyze.result_table import ResultTable, Row, TableTooLargeError
from penstock.errors import PenstockError


def rows(**values: str) -> list[Row]:
    return [(key.encode(), value.encode(), (b"q",)) for key, value in values.items()]


def test_only_what_differs_is_written_and_what_left_has_a_tombstone(tmp_path: Path) -> None:
    table = ResultTable(tmp_path / "top.table")
    assert table.changes(rows(a="1", b="2"), False) == rows(a="1", b="2")
    table.save()
    assert table.changes(rows(a="1", c="3"), False) == [*rows(c="3"), (b"b", None, (b"q",))]


def test_a_crash_before_the_rows_are_kept_writes_the_same_changes_again(tmp_path: Path) -> None:
    file = tmp_path / "top.table"
    table = ResultTable(file)
    table.changes(rows(a="1", b="2"), False)
    table.save()
    changed = table.changes(rows(a="1", b="3"), False)
    assert ResultTable(file).changes(rows(a="1", b="3"), False) == changed == rows(b="3")
    table.save()
    assert ResultTable(file).changes(rows(a="1", b="3"), False) == []


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

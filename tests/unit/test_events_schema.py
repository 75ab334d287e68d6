"""A topic's schema: read from Spark's DDL, and judge of events."""

from __future__ import annotations

import pytest

from penstock.events.schema import SchemaError, parse_schema

DDL = """id STRING NOT NULL, amount DOUBLE, n INT, price DECIMAL(10, 2), tags ARRAY<STRING>, m MAP<STRING, INT>,
    place STRUCT<lat: DOUBLE, lon: DOUBLE NOT NULL>, at TIMESTAMP, `two words` BOOLEAN COMMENT 'quoted'"""


def test_every_kind_of_column_is_read() -> None:
    """Names, types, nesting, quotes and comments as Spark has them."""
    schema = parse_schema(DDL)
    assert schema.names == ["id", "amount", "n", "price", "tags", "m", "place", "at", "two words"]
    assert schema.required == ["id"]
    assert schema.columns[3].type.digits == (10, 2)
    assert [column.name for column in schema.columns[6].type.columns] == ["lat", "lon"]


@pytest.mark.parametrize(
    "event",
    [
        b'{"id": "a"}',
        b'{"id": "a", "amount": 1, "n": -5, "price": 1.25, "tags": ["x", null], "m": {"k": 1}, "more": {}}',
        b'{"id": "a", "amount": null, "place": {"lon": 1.5}, "at": "2026-11-16T03:00:00Z", "two words": true}',
        '{"id": "ünï", "at": "2026-11-16 03:00:00"}'.encode(),
    ],
)
def test_an_event_of_the_schema_has_no_fault(event: bytes) -> None:
    """Columns may be absent or null unless NOT NULL; columns that nobody declared are nobody's fault."""
    assert parse_schema(DDL).fault(event) is None


@pytest.mark.parametrize(
    ("event", "fault"),
    [
        (b"{}", "field id is missing"),
        (b'{"id": null}', "field id: expected string, got null"),
        (b'{"id": "a", "amount": "12"}', "field amount: expected number | null, got string"),
        (b'{"id": "a", "n": 1.5}', "field n: expected whole number | null, got number"),
        (b'{"id": "a", "n": 3000000000}', "field n: expected whole number <= 2147483647"),
        (b'{"id": "a", "tags": ["x", 1]}', "field tags[1]: expected string | null, got whole number"),
        (b'{"id": "a", "place": {"lat": 1}}', "field place.lon is missing"),
        (b'{"id": "a", "at": "yesterday"}', "field at: invalid RFC3339 encoded datetime"),
        (b"[]", "expected object, got array"),
        (b"{", "not JSON"),
        (b'{"id": "\xff"}', "not JSON"),
        (b"", "not JSON"),
    ],
)
def test_a_fault_names_the_field(event: bytes, fault: str) -> None:
    """Whoever sent it can mend it."""
    assert (parse_schema(DDL).fault(event) or "").startswith(fault)


@pytest.mark.parametrize(
    ("ddl", "why"),
    [
        ("", "expected the name of a column"),
        ("id", "has no type"),
        ("id STRNG", "STRNG"),
        ("id STRING,", "expected the name of a column, found 'the end'"),
        ("id STRING amount DOUBLE", "expected ','"),
        ("a INT, A INT", "there twice"),
        ("m MAP<INT, STRING>", "must be STRING"),
        ("a ARRAY<INT", "expected '>'"),
        ("d DECIMAL(50, 2)", "1 to 38 digits"),
        ("x INT; DROP", "cannot read"),
    ],
)
def test_what_is_no_ddl_is_refused_with_its_place(ddl: str, why: str) -> None:
    """Before anything runs."""
    with pytest.raises(SchemaError, match=why):
        parse_schema(ddl)


def test_columns_are_picked_as_text() -> None:
    """For keys and identities."""
    schema = parse_schema(DDL)
    event = schema.decode(b'{"id": "a", "n": 3, "at": "2026-11-16T03:00:00Z", "two words": true}')
    texts = [schema.text(name)(event) for name in ("id", "n", "at", "amount", "two words")]
    assert texts == ["a", "3", "2026-11-16T03:00:00Z", None, "true"]

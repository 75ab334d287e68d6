"""The text of a Spark type is read as Spark reads it; a test on Spark compares the two."""

from __future__ import annotations

import json

import pytest

from penstock.events.schema import SchemaError
from penstock.events.type_json import type_json

FIELDS = {"type": "struct", "fields": [{"name": "a", "type": "integer", "nullable": True, "metadata": {}}]}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("double", "double"),
        (" BIGINT ", "long"),
        ("decimal", "decimal(10,0)"),
        ("numeric( 16 , 8 )", "decimal(16,8)"),
        ("varchar(50)", "varchar(50)"),
        ("array<array<tinyint>>", {
            "type": "array", "containsNull": True,
            "elementType": {"type": "array", "elementType": "byte", "containsNull": True},
        }),
        ("map<int, date>", {"type": "map", "keyType": "integer", "valueType": "date", "valueContainsNull": True}),
        ("a int", FIELDS),
        ("a: int", FIELDS),
        ("struct<a: int>", FIELDS),
        ("struct<>", {"type": "struct", "fields": []}),
        ("`two ``words` string NOT NULL COMMENT 'it\\'s'", {"type": "struct", "fields": [
            {"name": "two `words", "type": "string", "nullable": False, "metadata": {"comment": "it's"}}
        ]}),
    ],
)  # fmt: skip
def test_a_type_and_columns_are_read(text: str, wanted: object) -> None:
    assert json.loads(type_json(text)) == wanted


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no type of Spark: the text ends"),
        ("dobule", "no type of Spark: dobule"),
        ("a dobule", "no type of Spark: dobule"),
        ("a int,", "expected the name of a column, found 'the end'"),
        ("array<int", "expected '>', found 'the end'"),
        ("map<int, boolean>>", "expected the end, found '>'"),
        ("decimal(39)", "DECIMAL takes at most 38 digits, and no more of them after the point"),
        ("decimal(3, 4)", "DECIMAL takes at most 38 digits, and no more of them after the point"),
    ],
)
def test_what_is_wrong_is_named(text: str, fault: str) -> None:
    with pytest.raises(SchemaError) as wrong:
        type_json(text)
    assert str(wrong.value) == fault

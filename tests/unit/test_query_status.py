"""The record of penstock.queries: every client may write to the topic."""

from __future__ import annotations

import pytest

from penstock.query_status import QueryStatus, decode_status, encode_status

GOOD = QueryStatus(app="a", query="q", at_ms=1, state="running", lag=3, positions={"t": {"0": 7}})


def test_a_status_reads_back_as_it_was_written() -> None:
    assert decode_status(encode_status(GOOD)) == GOOD
    assert GOOD.key == "a/q"


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"[]",
        b"{}",
        b'{"app":"a\xff"}',
        b"[" * 100_000,
        b'{"app":"a","query":"q","at_ms":1,"state":"running","stalled_ms":' + b"9" * 400 + b"}",
        b'{"app":"a","query":"q","at_ms":-1,"state":"running"}',
        b'{"app":"a","query":"q","at_ms":1,"state":"running","positions":{"t":{"0":-1}}}',
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_status_is_none(value: bytes | None) -> None:
    assert decode_status(value) is None

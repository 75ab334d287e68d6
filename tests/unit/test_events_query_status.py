"""The record of penstock.queries: every client may write to the topic."""

from __future__ import annotations

import msgspec
import pytest

from penstock.events.query_status import QueryState, QueryStatus, decode_status, encode_status, is_silent

GOOD = QueryStatus(app="a", query="q", at_ms=1, state=QueryState.RUNNING, lag=3, positions={"t": {"0": 7}})


def test_a_status_reads_back_as_it_was_written() -> None:
    assert decode_status(encode_status(GOOD)) == GOOD
    assert GOOD.key == "a/q"


@pytest.mark.parametrize("state", list(QueryState))
def test_a_state_is_written_as_its_word(state: QueryState) -> None:
    status = QueryStatus(app="a", query="q", at_ms=1, state=state)
    assert msgspec.json.decode(encode_status(status))["state"] == state.name.lower()
    assert decode_status(b'{"app":"a","query":"q","at_ms":1,"state":"%s"}' % state.encode()) == status


def test_the_text_of_a_state_of_a_newer_version_is_kept() -> None:
    value = b'{"app":"a","query":"q","at_ms":1,"state":"rebalancing"}'
    said = decode_status(value)
    assert said is not None
    assert said.state not in list(QueryState)
    assert f"{said.state}" == msgspec.to_builtins(said)["state"] == "rebalancing"
    assert decode_status(encode_status(said)) == said
    assert is_silent(said, 60_000)
    assert list(QueryState) == [
        "starting", "running", "waiting", "restarting", "parked", "paused", "undeclared", "dropped", "stopped",
    ]  # fmt: skip


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
        b'{"app":"a","query":"q","at_ms":1,"state":7}',
        b'{"app":"a","query":"q","at_ms":1,"state":null}',
        b'{"app":"a","query":"q","at_ms":-1,"state":"running"}',
        b'{"app":"a","query":"q","at_ms":1,"state":"running","positions":{"t":{"0":-1}}}',
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_status_is_none(value: bytes | None) -> None:
    assert decode_status(value) is None

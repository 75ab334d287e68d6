"""Lines are cut the same however the bytes arrive, and the answer to a stream says what became of each."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from penstock.connectors.http.ndjson import FAULTS_MAX, Lines, Pace, Tally

LIMIT = 8


def cut(data: bytes, sizes: list[int]) -> list[tuple[int, bytes | None]]:
    lines = Lines(LIMIT)
    found = []
    position = 0
    for size in [*sizes, len(data)]:
        found += lines.feed(data[position : position + size])
        position += size
    return found + lines.end()


@given(
    data=st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b" ", b"x" * LIMIT, b"\xff"]), max_size=30).map(b"".join),
    sizes=st.lists(st.integers(0, 12), max_size=20),
)
def test_lines_do_not_depend_on_how_the_bytes_arrive(data: bytes, sizes: list[int]) -> None:
    expected: list[tuple[int, bytes | None]] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        whole = line.removesuffix(b"\r")
        if len(line) > LIMIT + 1:
            expected.append((number, None))
        elif line.strip():
            expected.append((number, whole))
    assert cut(data, sizes) == expected
    assert cut(data, []) == expected


def test_nothing_of_a_line_too_long_is_kept() -> None:
    lines = Lines(LIMIT)
    for _ in range(1000):
        assert lines.feed(b"x" * 1000) == []
    assert len(lines._rest) <= LIMIT + 1
    assert lines.feed(b"\nok\n") == [(1, None), (2, b"ok")]


def test_the_status_of_a_stream_follows_from_its_lines() -> None:
    """202 all, 207 some, 400 none, 503 when the queue did not take all, 408 when it was cut."""

    def status(accepted: int, refused: int, unstored: int, cut: str = "") -> int:
        tally = Tally()
        tally.accepted = accepted
        for number in range(refused):
            tally.refuse(number, "bad")
        for number in range(unstored):
            tally.miss(number, "away")
        answer = tally.answer(cut)
        body = json.loads(answer.body)
        assert (body["accepted"], body["refused"], body["unstored"]) == (accepted, refused, unstored)
        assert len(body["faults"]) + body["faults_left_off"] == refused + unstored
        assert len(body["faults"]) <= FAULTS_MAX
        assert (b"retry-after" in dict(answer.headers)) == (answer.status == 503)
        return answer.status

    assert status(3, 0, 0) == 202
    assert status(3, 1, 0) == 207
    assert status(0, 1000, 0) == 400
    assert status(0, 0, 0) == 400
    assert status(3, 1, 1) == 503
    assert status(3, 0, 0, "late") == 408
    assert status(3, 0, 1, "late") == 503


def test_a_stream_comes_on_well_with_enough_bytes_and_a_whole_line() -> None:
    """Bytes without a line, or lines without bytes, are no progress; each deadline begins at nothing."""
    pace = Pace(100)
    assert not pace.on_chunk(1_000, 0)
    assert pace.on_chunk(1, 1)
    assert not pace.on_chunk(99, 5)
    assert pace.on_chunk(1, 0)
    assert not pace.on_chunk(0, 1)

"""A batch whose records lie about their framing is refused before anything of it is stored."""

from __future__ import annotations

import pytest
from stage.batches import batch, raw_batch, record
from stage.nodes import Stage, ack_of, records_of

from penstock.broker import produce
from penstock.errors import ErrorCode
from penstock.records.record import encode_varint

ONE = record(0, 0, None, b"v")
LIES = {
    "count larger": raw_batch(ONE, 2),
    "count smaller": raw_batch(ONE + record(1, 0, None, b"w"), 1),
    "record longer than the batch": raw_batch(encode_varint(500) + ONE[1:], 1),
    "no headers": raw_batch(record(0, 0, None, b"v", b""), 1),
    "no records": raw_batch(b"", 1),
}


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The requests that were decoded, in place of compared with earlier ones."""
    calls: list[object] = []
    real = produce.decode_produce
    monkeypatch.setattr(produce, "decode_produce", lambda *given: (calls.append(given), real(*given))[1])
    return calls


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("before", [0, 3])
def test_a_lie_is_refused_in_both_ways(lie: str, before: int, decoded: list[object]) -> None:
    """Of the first request of a client, and of one like those before it."""
    stage = Stage()
    stage.topic()
    for _ in range(before):
        stage.produce()
    assert len(decoded) == min(before, 1)

    ack = ack_of(stage.produce(LIES[lie]))

    assert ErrorCode(ack.error_code) is ErrorCode.INVALID_RECORD
    assert ack.error_message
    assert records_of(stage.fetch(0)).count(b"drop") == before
    assert ack_of(stage.produce()).base_offset == before


@pytest.mark.parametrize("before", [0, 3])
def test_a_topic_may_go_without_the_check(before: int) -> None:
    stage = Stage()
    stage.topic(penstock_check_records="false")
    for _ in range(before):
        stage.produce()
    for number, lie in enumerate(LIES.values()):
        answer = ack_of(stage.produce(lie))
        assert (answer.error_code, answer.base_offset >= before + number) == (0, True)


def test_the_setting_counts_from_the_next_request(decoded: list[object]) -> None:
    """A client whose requests are recognised sees the change as well."""
    stage = Stage()
    stage.topic(penstock_check_records="false")
    lie = LIES["count larger"]
    assert [ack_of(stage.produce(each)).error_code for each in (batch(), lie, lie)] == [0, 0, 0]
    assert len(decoded) == 1
    stage.configure("rain", {"penstock.check.records": "true"})
    assert ack_of(stage.produce(lie)).error_code == ErrorCode.INVALID_RECORD

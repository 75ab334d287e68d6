"""Batches whose records lie about their framing are refused, in both ways that a produce request takes."""

from __future__ import annotations

import pytest
from asking.connection import Connection
from asking.framing import (
    BELOW_NULL,
    CODECS,
    HONEST,
    IGNORED_BEHIND,
    LONG_LENGTHS,
    NOT_OPENED,
    OFFSETS,
    REFUSED,
    SEEN_IN_PLAIN,
    Framing,
)
from asking.requests import LATEST, create_topic, list_offset, produce

from penstock.errors import ErrorCode

GOOD = HONEST["three records"].batch("none")
ALL_LIES = REFUSED | SEEN_IN_PLAIN | LONG_LENGTHS | OFFSETS | BELOW_NULL
NONE, INVALID, UNKNOWN = ErrorCode.NONE, ErrorCode.INVALID_RECORD, ErrorCode.UNKNOWN_SERVER_ERROR


def expected(broker: str, lie: str, codec: str) -> ErrorCode:
    """The answer of each broker; docs/differences.md says why ours is not Kafka's where it is not."""
    if broker == "penstock" or lie in REFUSED:
        return INVALID
    if lie in LONG_LENGTHS:
        return UNKNOWN if codec == "none" else INVALID
    if lie in SEEN_IN_PLAIN:
        return INVALID if codec == "none" else NONE
    if lie in OFFSETS:
        return NONE if codec == "none" else UNKNOWN
    return NONE


def codes(connection: Connection, topic: str, framing: Framing, *, after: bytearray | None) -> list[ErrorCode]:
    """What is answered to a framing with each codec; `after` good batches, from a client that sent the same before."""
    answers = []
    for codec in CODECS:
        for _ in range(0 if after is None else 2):
            assert produce(connection, topic, after).error_code == 0
        answers.append(ErrorCode(produce(connection, topic, framing.batch(codec)).error_code))
    return answers


@pytest.mark.parametrize("lie", ALL_LIES)
def test_a_lie_about_framing_is_refused(connection: Connection, broker: str, lie: str, topic: str) -> None:
    """With each codec, on a connection of which nothing is known; what is refused takes no offset."""
    for codec in CODECS:
        name = f"{topic}-{codec}"
        create_topic(connection, name)
        with Connection(connection.address) as fresh:
            answer = produce(fresh, name, ALL_LIES[lie].batch(codec))
        assert ErrorCode(answer.error_code) is expected(broker, lie, codec), (codec, answer)
        if answer.error_code:
            assert answer.base_offset == -1
            assert list_offset(connection, name, LATEST) == (0, -1, 0)


@pytest.mark.parametrize("lie", ALL_LIES)
def test_a_lie_after_honest_batches_is_refused(connection: Connection, broker: str, lie: str, topic: str) -> None:
    """The broker recognises requests like earlier ones, and checks their records as well."""
    create_topic(connection, topic)
    answers = codes(connection, topic, ALL_LIES[lie], after=GOOD)
    assert answers == [expected(broker, lie, codec) for codec in CODECS]


@pytest.mark.parametrize("damage", NOT_OPENED)
def test_what_cannot_be_opened_is_refused(connection: Connection, broker: str, damage: str, topic: str) -> None:
    """Bytes that the codec of the header did not write."""
    create_topic(connection, topic)
    for codec, batch in NOT_OPENED[damage].items():
        answer = produce(connection, topic, batch)
        assert ErrorCode(answer.error_code) is (INVALID if broker == "penstock" else UNKNOWN), (codec, answer)


@pytest.mark.parametrize("surplus", IGNORED_BEHIND)
def test_compressed_bytes_that_are_not_needed_are_refused(
    connection: Connection, broker: str, surplus: str, topic: str
) -> None:
    create_topic(connection, topic)
    for codec, batch in IGNORED_BEHIND[surplus].items():
        answer = produce(connection, topic, batch)
        assert ErrorCode(answer.error_code) is (INVALID if broker == "penstock" else NONE), (codec, answer)


@pytest.mark.parametrize("framing", HONEST)
def test_an_honest_batch_is_stored(connection: Connection, framing: str, topic: str) -> None:
    create_topic(connection, topic)
    assert codes(connection, topic, HONEST[framing], after=None) == [NONE] * len(CODECS)
    assert codes(connection, topic, HONEST[framing], after=GOOD) == [NONE] * len(CODECS)


def test_a_topic_may_go_without_the_check(connection: Connection, broker: str, topic: str) -> None:
    """`penstock.check.records=false`, which only ours knows: the batch is stored as it came."""
    if broker == "kafka":
        pytest.skip("Kafka has no such setting")
    create_topic(connection, topic, configs={"penstock.check.records": "false"})
    for lie in ALL_LIES.values():
        assert codes(connection, topic, lie, after=None) == [NONE] * len(CODECS)

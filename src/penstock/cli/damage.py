"""Where a partition can be read again behind a damaged place, found by trying."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.cli.client import ANSWER_TIMEOUT_S, reason
from penstock.client.offsets import offset_range
from penstock.errors import PenstockError

if TYPE_CHECKING:
    from confluent_kafka import Consumer

DAMAGED = ("INVALID_MSG", "_BAD_MSG")
_TRIED_EACH = 32  # whole records between two damaged ones are found so far; behind, a short run may be passed over


def next_readable(settings: dict[str, Any], topic: str, partition: int, damaged: int) -> int:
    """An offset behind `damaged` that can be read while the one before it cannot; the end if there is none."""
    from confluent_kafka import Consumer

    # What was read ahead is thrown away by every try.
    probe = Consumer(settings | {"fetch.error.backoff.ms": 0, "fetch.max.bytes": 1 << 20, "queued.min.messages": 1})
    try:
        _, end = offset_range(probe, topic, partition, ANSWER_TIMEOUT_S)
        bad, step = damaged, 1
        while (good := min(bad + step, end)) < end and not _is_readable(probe, topic, partition, good):
            bad, step = good, 1 if good - damaged < _TRIED_EACH else step * 2
        while good - bad > 1:
            middle = (bad + good) // 2
            if _is_readable(probe, topic, partition, middle):
                good = middle
            else:
                bad = middle
        return good
    finally:
        probe.close()


def _is_readable(probe: Consumer, topic: str, partition: int, offset: int) -> bool:
    from confluent_kafka import TopicPartition

    probe.assign([TopicPartition(topic, partition, offset)])
    message = probe.poll(ANSWER_TIMEOUT_S)
    if message is None:
        raise PenstockError(f"the broker did not answer within {ANSWER_TIMEOUT_S:.0f} s: try again")
    error = message.error()
    if error is None or error.name() == "_PARTITION_EOF":
        return True
    if error.name() in DAMAGED:
        return False
    raise PenstockError(f"reading partition {partition} of {topic} failed: {reason(error)}")

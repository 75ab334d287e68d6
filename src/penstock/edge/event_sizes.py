"""Whether the topic takes an event of this size: the batch that has this event alone counts. Pure."""

from __future__ import annotations

from penstock.connect.not_stored import TOO_LARGE, UNAVAILABLE, Failure
from penstock.events.headers import ID_LENGTH_MAX, Headers, event_headers
from penstock.kafka.records.size import batch_size

_PRODUCER = b"x" * 36  # a UUID
_SEQUENCE_MAX = 2**63 - 1  # so that the verdict does not depend on how many events came before
_TIME_MS = 10**12  # 13 digits, until the year 2286
_VARINTS = 32  # what lengths take beyond those of an empty event: up to 4 bytes each


def event_batch_size(value: bytes, key: bytes | None, id: str, headers: Headers | None) -> int:
    """The most bytes that a batch of this event alone has, with all that the edge adds."""
    stamped = event_headers(id, _PRODUCER, _SEQUENCE_MAX, _TIME_MS)
    return batch_size(key, value, stamped + headers if headers else stamped)


# An event without headers of its own is larger than its value and key by less than this.
HEADROOM = event_batch_size(b"", None, "\N{GRINNING FACE}" * ID_LENGTH_MAX, None) + _VARINTS


def size_failure(reason: str, size: int, topic: str, bytes_max: int | None, *, is_known: bool) -> Failure:
    """What MESSAGE_TOO_LARGE means for one event. The queue says it of the whole batch that the event was in.

    `bytes_max` is what the queue tells now; None if it tells it not to this client. `is_known`: it has answered now.
    """
    if not is_known:
        return Failure(UNAVAILABLE, reason)
    if bytes_max is None:
        return Failure(TOO_LARGE, reason)
    if size > bytes_max:
        return Failure(TOO_LARGE, size_fault(size, topic, bytes_max))
    return Failure(UNAVAILABLE, f"{reason}: of a batch of several events, this one fits")


def size_fault(size: int, topic: str, bytes_max: int) -> str:
    """Why an event is refused that needs a batch of `size` bytes."""
    return f"the event needs {size} bytes with its key and headers, topic {topic} takes {bytes_max} (max.message.bytes)"

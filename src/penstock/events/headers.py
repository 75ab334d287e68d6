"""What travels with every event: its identity, who sent it, when; as headers of a record."""

from __future__ import annotations

import re
from collections.abc import Sequence

ID = "penstock-id"  # given by the sender, or a UUIDv7; a result carries that of the event it came from
PRODUCER = "penstock-producer"  # who counted `sequence`
SEQUENCE = "penstock-sequence"  # 0, 1, 2, … for each producer and topic: a gap is an error answer, or a loss
TIME = "penstock-time"  # milliseconds since 1970 when the event was accepted; a result carries its event's
SOURCE = "penstock-source"  # results only: TOPIC/PARTITION/OFFSET of the event
QUERY = "penstock-query"  # results only: the query that wrote it
KIND = "penstock-kind"  # results only: upsert (replaces the row of its key), final (the one row of its key), append
KEY_COLUMNS = "penstock-key-columns"  # results only: the columns of the key, with commas; absent without a key
REASON = "penstock-reason"  # dead letters and late events only: why no query, or not this one, has it

ID_LENGTH_MAX = 256
# A clock may be wrong, or its zone for the winter; but one event of tomorrow would end every window of today.
EVENT_LEAD_MS = 3_600_000
DEAD_SUFFIX = ".dead"
LATE_SUFFIX = ".late"
QUERIES_TOPIC = "penstock.queries"  # a record for each progress of each query, keyed by APP/QUERY

BATCHES_SUFFIX = ".batches"

KEY_JOINT, KEY_NULL = "|", r"\N"
KEY_ESCAPES = (("\\", r"\\"), ("|", r"\|"))

Headers = list[tuple[str, bytes]]


def event_headers(id: str, producer: bytes, sequence: int, time_ms: int) -> Headers:
    """The headers of a new event."""
    return [(ID, id.encode()), (PRODUCER, producer), (SEQUENCE, b"%d" % sequence), (TIME, b"%d" % time_ms)]


def dead_topic(topic: str) -> str:
    """Where the events of `topic` go that do not parse."""
    return topic + DEAD_SUFFIX


def late_topic(topic: str) -> str:
    """Where the events of `topic` go that come after the watermark of a query that keeps them."""
    return topic + LATE_SUFFIX


def batches_topic(app: str, query: str) -> str:
    """Where a query that is exactly-once notes each batch, in one transaction with its results."""
    return f"penstock.{app}.{query}{BATCHES_SUFFIX}"


def orders_topic(app: str) -> str:
    """Where operators order the queries of an app to pause, to start from another place, and so on."""
    return f"penstock.{app}.orders"


def query_group(app: str, query: str) -> str:
    """The consumer group whose committed offsets are the positions of a query."""
    return f"penstock.{app}.{query}"


def join_key(parts: Sequence[str | None]) -> str:
    """Several columns as one text: ("a|b", "c") and ("a", "b|c") are two, and so are null and ""."""
    return KEY_JOINT.join([KEY_NULL if part is None else _escaped(part) for part in parts])


def _escaped(part: str) -> str:
    for plain, escaped in KEY_ESCAPES:
        part = part.replace(plain, escaped)
    return part


def lead_fault(column: str) -> str:
    """Why an event is refused whose time is more than EVENT_LEAD_MS after it came."""
    return f"field {column}: more than an hour in the future"


def id_fault(id: str) -> str | None:
    """Why this text cannot be an event's id, or None."""
    if not id:
        return "an id must not be empty"
    if len(id) > ID_LENGTH_MAX:
        return f"an id has at most {ID_LENGTH_MAX} characters"
    if re.search(r"[\x00-\x1f\x7f]", id):
        return "an id must not have control characters"
    return None

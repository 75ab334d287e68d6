"""The rows of a test as records of a topic: checked against its schema, with offsets and times of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from penstock.analyze.trial_records import InputHeader, InputRecord
from penstock.config.setting import hint
from penstock.errors import ConfigError
from penstock.events.headers import ID
from penstock.events.record_format import RecordFormat
from penstock.plan.plan import TopicPlan
from penstock.plan.tables import TablePlan

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
START = datetime(2026, 1, 1, tzinfo=UTC)  # the time of a topic without an event time

_ENCODER = msgspec.json.Encoder(decimal_format="number")
_MS = timedelta(milliseconds=1)
_BYTES_INSTEAD = "correct it, or give the event as bytes to test what becomes of it"


@dataclass(frozen=True)
class Event:
    """An event of which a test says more than its row.

    `value` is a row, or the bytes of a record, which need not parse. `id`, `partition` and `time` become those of
    `_event`. Without an id, `_event.id` is TOPIC/PARTITION/OFFSET, as of an event that comes from a Kafka client.
    `time` is when the event was accepted: by default its event time, but never before that of an event before it.
    """

    value: Mapping[str, Any] | bytes
    id: str | None = None
    time: datetime | None = None
    partition: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)


Given = Event | Mapping[str, Any] | bytes


class TopicRecords:
    """Makes the records of one topic, in the order of their arrival."""

    def __init__(self, topic: TopicPlan) -> None:
        self._topic = topic
        self._offsets: dict[int, int] = {}
        is_told = topic.event_time is not None and topic.format is RecordFormat.JSON
        self._clock = EPOCH if is_told else START

    def record(self, given: Given, place: str) -> InputRecord:
        """The next record; ConfigError if a row does not fit the schema, `place` says where it is in the test."""
        event = as_event(given)
        value = event_bytes(event, self._topic, place)
        offset = self._offsets.get(event.partition, 0)
        self._offsets[event.partition] = offset + 1
        if event.time is not None:
            time = _aware(event.time)
        else:
            time = self._clock = max(self._clock, event_time(value, self._topic) or self._clock)
        headers = dict(event.headers) if event.id is None else {ID: event.id, **event.headers}
        return InputRecord(
            topic=self._topic.name,
            partition=event.partition,
            offset=offset,
            time_ms=(time - EPOCH) // _MS,
            value=value,
            headers=tuple(InputHeader(name, text.encode()) for name, text in headers.items()),
        )


def as_event(given: Given) -> Event:
    """A row or a value alone is an event of which nothing else is said."""
    return given if isinstance(given, Event) else Event(given)


def event_bytes(event: Event, topic: TopicPlan, place: str) -> bytes:
    """The value of its record; ConfigError if it is a row that does not fit the schema of the topic."""
    row = event.value
    if isinstance(row, bytes):
        return row
    if not isinstance(row, Mapping):
        raise ConfigError(f"{place} is a {type(row).__name__}: an event is a dict, an Event or bytes")
    if topic.format is not RecordFormat.JSON:
        raise ConfigError(f"{place}: topic {topic.name} has format='{topic.format}': give its events as bytes")
    columns = topic.schema.names if topic.schema else []
    for name in row:
        if name not in columns:
            known = dict.fromkeys(columns)
            raise ConfigError(
                f"{place}: topic {topic.name} has no column {name}{hint(str(name), known)}: {_BYTES_INSTEAD}"
            )
    try:
        value = _ENCODER.encode(row)
    except (TypeError, ValueError) as wrong:
        raise ConfigError(f"{place} is not JSON: {wrong}") from wrong
    if topic.schema and (fault := topic.schema.fault(value)):
        raise ConfigError(f"{place}: {fault}: {_BYTES_INSTEAD}")
    return value


def table_row(row: Any, table: TablePlan, place: str) -> bytes:
    """The row of a table as JSON; ConfigError if it does not fit the schema."""
    if not isinstance(row, Mapping):
        raise ConfigError(f"{place} is a {type(row).__name__}: a row of a table is a dict")
    columns = dict.fromkeys(table.schema.names if table.schema else row)
    for name in row:
        if name not in columns:
            raise ConfigError(f"{place}: table {table.name} has no column {name}{hint(str(name), columns)}")
    try:
        value = _ENCODER.encode(row)
    except (TypeError, ValueError) as wrong:
        raise ConfigError(f"{place} is not JSON: {wrong}") from wrong
    if table.schema and (fault := table.schema.fault(value)):
        raise ConfigError(f"{place}: {fault}")
    return value


def event_time(value: bytes, topic: TopicPlan) -> datetime | None:
    """The event time of a record; None if it has none, or does not parse."""
    if topic.schema is None or topic.event_time is None or topic.format is not RecordFormat.JSON:
        return None
    try:
        found = topic.schema.part(topic.event_time)(topic.schema.decode(value))
    except ValueError:
        return None
    return _aware(found) if isinstance(found, datetime) else None


def _aware(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)  # queries run in UTC

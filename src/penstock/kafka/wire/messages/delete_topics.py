"""DeleteTopics: remove topics."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from penstock.kafka.wire.fields import array, int16, int32, string, uuid
from penstock.kafka.wire.message import Message, Struct


@dataclass(slots=True)
class DeleteTopicState(Struct):
    name: str | None = string.or_null(since=6)
    topic_id: UUID = uuid(since=6)


@dataclass(slots=True)
class DeleteTopicsRequest(Message):
    """Topics to delete: names up to version 5, names or ids after."""

    versions = (1, 6)
    flexible = 4

    topics: list[DeleteTopicState] = array(DeleteTopicState, since=6)
    topic_names: list[str] = array(string, until=5, ignorable=True)
    timeout_ms: int = int32()


@dataclass(slots=True)
class DeletableTopicResult(Struct):
    name: str | None = string.or_null(default="", nullable_since=6)
    topic_id: UUID = uuid(since=6, ignorable=True)
    error_code: int = int16()
    error_message: str | None = string.or_null(since=5, ignorable=True)


@dataclass(slots=True)
class DeleteTopicsResponse(Message):
    """What became of each topic."""

    versions = (1, 6)
    flexible = 4

    throttle_time_ms: int = int32(ignorable=True)
    responses: list[DeletableTopicResult] = array(DeletableTopicResult)

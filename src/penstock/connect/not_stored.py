"""Classify an error of the queue for the sender of an event as permanent or retriable. Pure."""

from __future__ import annotations

from collections.abc import Collection
from enum import IntEnum
from typing import NamedTuple

from penstock.errors import ErrorCode


class ClientError(IntEnum):
    """Errors of librdkafka itself, and codes of Kafka that our broker never answers."""

    QUEUE_FULL = -184
    AUTHENTICATION = -169
    RECORD_LIST_TOO_LARGE = 18
    TOPIC_AUTHORIZATION_FAILED = 29
    CLUSTER_AUTHORIZATION_FAILED = 31
    UNSUPPORTED_SASL_MECHANISM = 33
    ILLEGAL_SASL_STATE = 34
    SASL_AUTHENTICATION_FAILED = 58
    THROTTLING_QUOTA_EXCEEDED = 89


BAD_REQUEST, FORBIDDEN, TOO_LARGE, OVERLOADED, UNAVAILABLE = 400, 403, 413, 429, 503

# An error that is not here passes: the sender is asked to try again. Among them is UNKNOWN_TOPIC_OR_PARTITION: the
# operator repairs a declared topic that is missing, and the event is not wrong.
_PERMANENT: dict[int, int] = {
    ErrorCode.MESSAGE_TOO_LARGE: TOO_LARGE,
    ClientError.RECORD_LIST_TOO_LARGE: TOO_LARGE,
    ErrorCode.CORRUPT_MESSAGE: BAD_REQUEST,  # librdkafka: INVALID_MSG
    ErrorCode.INVALID_RECORD: BAD_REQUEST,
    ErrorCode.INVALID_TIMESTAMP: BAD_REQUEST,
    ErrorCode.POLICY_VIOLATION: BAD_REQUEST,
    ClientError.TOPIC_AUTHORIZATION_FAILED: FORBIDDEN,
    ClientError.CLUSTER_AUTHORIZATION_FAILED: FORBIDDEN,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: FORBIDDEN,
    ClientError.SASL_AUTHENTICATION_FAILED: FORBIDDEN,
    ClientError.UNSUPPORTED_SASL_MECHANISM: FORBIDDEN,
    ClientError.ILLEGAL_SASL_STATE: FORBIDDEN,
    ClientError.AUTHENTICATION: FORBIDDEN,
}
_OVERLOAD = (ClientError.QUEUE_FULL, ClientError.THROTTLING_QUOTA_EXCEEDED)


class Failure(NamedTuple):
    """Why an event was not stored, and the status of an answer to it alone."""

    status: int
    reason: str

    @property
    def is_permanent(self) -> bool:
        """Whether the same event fails again."""
        return self.status not in (OVERLOADED, UNAVAILABLE)


def failure_of(code: int, reason: str, drops: bool) -> Failure:
    """The meaning of a Kafka error code; `drops`: the topic's guarantee lets events go under overload."""
    if drops and code in _OVERLOAD:
        return Failure(OVERLOADED, reason)
    return Failure(_PERMANENT.get(code, UNAVAILABLE), reason)


def common_status(statuses: Collection[int]) -> int:
    """The status of an answer to events that failed with these: 503 where a retry helps one of them."""
    found = set(statuses)
    if len(found) == 1:
        return found.pop()
    return UNAVAILABLE if found & {OVERLOADED, UNAVAILABLE} else BAD_REQUEST

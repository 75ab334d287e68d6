"""What a sender hears, for everything that can become of its events. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.connect.not_stored import Failure, common_status
from penstock.connect.problem import problem

RETRY_AFTER_S = 1
FAULTS_MAX = 100  # named one by one; the rest is counted
JSON = (b"content-type", b"application/json")
_FIELD = re.compile(r"(?:field|attribute|header) ([^\s:]+)")
_encode = msgspec.json.encode


class Answer(NamedTuple):
    """A response: status, JSON body, headers besides type and length."""

    status: int
    body: bytes
    headers: tuple[tuple[bytes, bytes], ...] = ()


def accepted(ids: Sequence[str]) -> Answer:
    """All events are stored."""
    return Answer(202, _encode({"ids": ids}))


def bad_event(reason: str, event: int | None, status: int = 400) -> Answer:
    """One event of a body that is taken as a whole is bad: nothing was stored."""
    field = _FIELD.match(reason)
    where = "" if event is None else f"event {event}: "
    return failure(status, where + reason, event=event, field=field[1] if field else None)


def not_stored(ids: Sequence[str], failed: Mapping[int, Failure]) -> Answer:
    """The queue did not take all of these events. What is not reported as stored may be stored nevertheless."""
    status = common_status([failure.status for failure in failed.values()])
    passing = [failure for failure in failed.values() if not failure.is_permanent]
    refused = [failure for failure in failed.values() if failure.is_permanent]
    sentences = []
    if passing:
        sentences.append(
            f"the queue did not acknowledge {len(passing)} of {len(ids)} events in time ({passing[0].reason}): "
            "they may or may not be stored, send them again"
        )
    if refused:
        sentences.append(
            f"the queue refused {len(refused)} of {len(ids)} events ({refused[0].reason}): they are not stored, and "
            "sending them again does not help"
        )
    faults = [
        {"event": number, "id": ids[number], "error": failure.reason, "retry": not failure.is_permanent}
        for number, failure in sorted(failed.items())[:FAULTS_MAX]
    ]
    body = problem(
        status,
        "; ".join(sentences),
        stored=[id for number, id in enumerate(ids) if number not in failed],
        unknown=[id for number, id in enumerate(ids) if number in failed],
        faults=faults,
        faults_left_off=len(failed) - len(faults),
    )
    return Answer(status, body, (retry_after(),) if passing else ())


def overloaded(drops: bool, what: str) -> Answer:
    """There is no room now: 429 where the guarantee lets events go, else 503."""
    status = 429 if drops else 503
    return Answer(status, problem(status, f"{what}: send it again later"), (retry_after(),))


def topic_unavailable(error: str) -> Answer:
    """The topic is not as the app made it: nothing was stored."""
    return Answer(503, problem(503, error), (retry_after(),))


def unknown_path(path: str, paths: Iterable[str]) -> Answer:
    """No door is there."""
    known = [f"/ingest/{name}" for name in paths]
    return failure(404, f"there is no /ingest/{path[:100]}", known=known)


def wrong_method(method: str, allowed: str) -> Answer:
    return Answer(405, problem(405, f"{allowed} only, not {method[:20]}"), ((b"allow", allowed.encode()),))


def wrong_type(content_type: str, accepted_types: str) -> Answer:
    """The body is in no form of ours."""
    said = f"Content-Type {content_type[:100]!r}" if content_type else "a body without Content-Type"
    return failure(415, f"{said} is not taken here: send {accepted_types}")


def too_large(what: str) -> Answer:
    return Answer(413, problem(413, what), ((b"connection", b"close"),))


def too_late(details: dict[str, Any] | None = None) -> Answer:
    """The request was not whole in time."""
    body = problem(408, "the request was not whole in time", **(details or {}))
    return Answer(408, body, ((b"connection", b"close"),))


def failure(status: int, error: str, **details: Any) -> Answer:
    """Any other refusal."""
    return Answer(status, problem(status, error, **details))


def retry_after() -> tuple[bytes, bytes]:
    return (b"retry-after", b"%d" % RETRY_AFTER_S)

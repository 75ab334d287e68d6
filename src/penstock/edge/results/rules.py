"""What ?wait= may ask for, and what is answered. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import parse_qs, quote

import msgspec

from penstock.config.setting import parameter_fault
from penstock.connect.problem import problem
from penstock.connect.responses import Answer, retry_after
from penstock.edge.results.query_paths import Way

PARAMETERS = ("wait", "timeout_ms")


class Asked(NamedTuple):
    """A request that waits: for the last query of a way, for so long."""

    way: Way
    timeout_ms: int

    @property
    def query(self) -> str:
        """The query whose result is wanted."""
        return self.way[-1].query


def read_wait(query_string: bytes, ways: Mapping[str, Way], wait_ms_max: int) -> Asked | None:
    """What a request's query string asks to wait for; None: nothing. ValueError says what is wrong."""
    given = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    if fault := parameter_fault(given, PARAMETERS):
        raise ValueError(fault)
    if "wait" not in given:
        return None
    way = ways.get(given["wait"][-1])
    if way is None:
        there = f"wait for one of {', '.join(ways)}" if ways else "no query reads this topic"
        raise ValueError(f"no query {given['wait'][-1][:100]!r} gets this event: {there}")
    text = given.get("timeout_ms", [str(wait_ms_max)])[-1]
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= wait_ms_max):
        raise ValueError(f"timeout_ms is between 1 and {wait_ms_max}, not {text[:20]!r}")
    return Asked(way, int(text))


def read_since(query_string: bytes) -> int | None:
    """The time in ms from which a result is looked for; ValueError if it is none."""
    given = parse_qs(query_string.decode("latin-1"), keep_blank_values=True)
    if fault := parameter_fault(given, ("since",)):
        raise ValueError(fault)
    text = given.get("since", [""])[-1]
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 15):
        raise ValueError(f"since is a time in milliseconds since 1970, not {text[:20]!r}")
    return int(text)


def nameless_fault(query: str, asked: str) -> str:
    """Why nobody can wait for a query whose results do not tell of which event they are."""
    behind = "" if query == asked else f" on the way to {asked}"
    return (
        f"no result of query {query}{behind} tells of which event it is, so there is nothing to wait for: "
        "add _event to what the query selects, or follow its topic at /live"
    )


def with_result(id: str, value: bytes) -> Answer:
    """The result came."""
    return Answer(200, b'{"id":%s,"result":%s}' % (msgspec.json.encode(id), _json(value)))


def without_result(id: str, query: str, watermark: str | None) -> Answer:
    """The query has passed the event."""
    late = f": it left the event out, or the event came too late (the watermark is {watermark})" if watermark else ""
    reason = f"query {query} has passed this event and wrote no result for it{late}"
    return Answer(200, msgspec.json.encode({"id": id, "result": None, "reason": reason}))


def not_yet(id: str, query: str, since_ms: int, parked: str | None = None) -> Answer:
    """The event is stored, the result did not come in time, or cannot come before a parked query runs: where to ask."""
    where = f"/results/{quote(query, safe='')}/{quote(id, safe='')}?since={since_ms}"
    why = f"no result of {query} in time" if parked is None else parked
    body = {"ids": [id], "reason": f"{why}: the event is stored, ask again", "where": where}
    return Answer(202, msgspec.json.encode(body), ((b"location", where.encode()),))


def not_found(id: str, query: str) -> Answer:
    """Asked again, and still nothing."""
    reason = "there is no result: it may still come, the query may have dropped the event, or it is too long ago"
    return Answer(404, problem(404, reason, id=id, result=None, reason=reason), (retry_after(),))


def _json(value: bytes) -> bytes:
    try:
        msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return msgspec.json.encode(value.decode("utf-8", "replace"))
    return value

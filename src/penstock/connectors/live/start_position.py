"""Where a live client wants to begin, and where it wants to end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from penstock.client.start_words import BEGINNING, END, START_WORDS, start_word
from penstock.connectors.live.position_token import Positions, decode_offsets, decode_token


@dataclass(frozen=True, slots=True)
class Start:
    """`positions` name where to begin; what they do not name begins at `rest`: a word, a time in ms, or -N.

    -N is N before the end of each partition.
    """

    rest: Literal["now", "beginning"] | int = "now"
    positions: Positions | None = None


@dataclass(frozen=True, slots=True)
class Until:
    """The stream ends before `positions`; partitions that they do not name end at `rest`: now, or a time in ms."""

    rest: Literal["now"] | int = "now"
    positions: Positions | None = None


def parse_start(
    query: Mapping[str, str], last_event_id: str | None, topics: Sequence[str], resumable: Sequence[str]
) -> Start:
    """The start that a request asks for; ValueError says what is wrong with it."""
    begin, after = query.get("from"), query.get("after")
    # A browser that comes back sends the header with the address it began with.
    token = last_event_id or after
    if token:
        if not resumable:
            raise ValueError("this delivery is at-most-once and cannot be resumed: leave out after= and Last-Event-ID")
        # A partition that the token does not know is younger than the token.
        return Start("beginning", decode_token(token, topics))
    if begin is None:
        return Start("now")
    if word := start_word(begin):
        return Start("beginning" if word == BEGINNING else "now")
    if re.fullmatch(r"[0-9]+:[0-9:,]*", begin):
        if len(topics) > 1:
            raise ValueError("from=PARTITION:OFFSET is for one topic: use after= with a resume token")
        return Start("now", {(topics[0], partition): offset for partition, offset in decode_offsets(begin).items()})
    if re.fullmatch(r"-[1-9][0-9]{0,3}", begin):
        return Start(int(begin))
    moment_ms = _time_ms(begin)
    if moment_ms is None:
        raise ValueError(
            f"from is one of {', '.join(START_WORDS)}, -N for the last ones, offsets like 0:124,1:456 or a time like "
            f"2026-11-16T12:00:00Z, not {begin[:100]!r}"
        )
    return Start(moment_ms)


def parse_until(query: Mapping[str, str], topics: Sequence[str]) -> Until | None:
    """The end that a request asks for, None if it asks for none; ValueError says what is wrong with it."""
    end = query.get("until")
    if end is None:
        return None
    if start_word(end) == END:
        return Until("now")
    if re.fullmatch(r"[0-9]+:[0-9:,]*", end):
        if len(topics) > 1:
            raise ValueError("until=PARTITION:OFFSET is for one topic: use a resume token, TOPIC=0:124,1:456;TOPIC=…")
        return Until("now", {(topics[0], partition): offset for partition, offset in decode_offsets(end).items()})
    if "=" in end:
        return Until("now", decode_token(end, topics))
    moment_ms = _time_ms(end)
    if moment_ms is None:
        raise ValueError(
            "until is now, end, latest, offsets like 0:124,1:456, a resume token or a time like 2026-11-16T12:00:00Z, "
            f"not {end[:100]!r}"
        )
    return Until(moment_ms)


def _time_ms(text: str) -> int | None:
    """Milliseconds since 1970; None if this is no time with a zone."""
    try:
        # A plus sign in an address is a space once decoded.
        moment = datetime.fromisoformat(re.sub(r" (?=[0-9]{2}:?[0-9]{2}$)", "+", text))
        if moment.tzinfo is None:
            raise ValueError
        return max(0, int(moment.timestamp() * 1000))
    except (ValueError, OverflowError):
        return None

"""Where a live client wants to begin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from penstock.deliver.token import Positions, decode_offsets, decode_token


@dataclass(frozen=True, slots=True)
class Start:
    """`positions` name where to begin; what they do not name begins at `rest`: a word, a time in ms, or -N.

    -N is N before the end of each partition.
    """

    rest: Literal["now", "beginning"] | int = "now"
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
    if begin is None or begin == "now":
        return Start("now")
    if begin == "beginning":
        return Start("beginning")
    if re.fullmatch(r"[0-9]+:[0-9:,]*", begin):
        if len(topics) > 1:
            raise ValueError("from=PARTITION:OFFSET is for one topic: use after= with a resume token")
        return Start("now", {(topics[0], partition): offset for partition, offset in decode_offsets(begin).items()})
    if re.fullmatch(r"-[1-9][0-9]{0,3}", begin):
        return Start(int(begin))
    return Start(_time_ms(begin))


def _time_ms(text: str) -> int:
    try:
        # A plus sign in an address is a space once decoded.
        moment = datetime.fromisoformat(re.sub(r" (?=[0-9]{2}:?[0-9]{2}$)", "+", text))
        if moment.tzinfo is None:
            raise ValueError
        return max(0, int(moment.timestamp() * 1000))
    except (ValueError, OverflowError):
        raise ValueError(
            "from is now, beginning, -N for the last ones, offsets like 0:124,1:456 or a time like "
            f"2026-11-16T12:00:00Z, not {text[:100]!r}"
        ) from None

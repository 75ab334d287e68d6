"""What the supervisor tells a child on its standard input, a line each. Pure: the caller gives the time."""

from __future__ import annotations

import json
from collections.abc import Mapping

OPEN = "open"  # the edge may accept events: every query can run
RENEWED = "renewed"  # the lease of the app is held: analyze may write results
_TOPICS = "topics "


def topics_order(errors: Mapping[str, str]) -> str:
    """The line that names each declared topic which is not as the app made it, with the reason."""
    return _TOPICS + json.dumps(errors)


class Orders:
    """What one child was told so far; another thread may read it."""

    def __init__(self) -> None:
        self.is_open = False
        self.renewed_s: float | None = None
        self.topic_errors: Mapping[str, str] = {}

    def take(self, line: str, now_s: float) -> None:
        """One line of the supervisor, at `now_s`."""
        if line == OPEN:
            self.is_open = True
        elif line == RENEWED:
            self.renewed_s = now_s
        elif line.startswith(_TOPICS):
            self.topic_errors = json.loads(line.removeprefix(_TOPICS))

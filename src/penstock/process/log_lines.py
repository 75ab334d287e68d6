"""Structured log lines on standard error: time, level, event, then what belongs to it."""

from __future__ import annotations

import json
import sys
import time


def log_line(level: str, event: str, **details: object) -> None:
    """Write one line to standard error."""
    try:
        sys.stderr.write(text_of_line(level, event, **details) + "\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody reads the log: no reason to stop the queue


def text_of_line(level: str, event: str, **details: object) -> str:
    """`time level event key=value …`; values with spaces are quoted."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    fields = "".join(f" {key}={_value(value)}" for key, value in details.items())
    return f"{moment}Z {level.upper()} {event}{fields}"


def _value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return json.dumps(text) if any(c in text for c in ' "=\n\\') or not text.isprintable() else text

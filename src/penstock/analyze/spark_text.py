"""What an error of Spark says, in one line."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException

_WORDS_MAX = 500
_PLACE_IN_SQL = re.compile(r"\(line \d+, pos \d+\)")


def spark_words(error: BaseException) -> str:
    """What an error says, in one line; of Spark's errors without plans and traces."""
    text = str(error).strip() or type(error).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not isinstance(error, PySparkException):
        return " ".join(lines)[:_WORDS_MAX]
    said, _, state = lines[0].partition(" SQLSTATE")
    place = _PLACE_IN_SQL.search(state)
    return f"{said} {place[0]}" if place else said[:_WORDS_MAX]

"""A record as one line for a person who watches: time, topic, key, value."""

from __future__ import annotations

import unicodedata
from datetime import datetime

import click

from penstock.cli.records_text import Shown, escaped

COLOURS = ("cyan", "yellow", "green", "magenta", "blue", "bright_red", "bright_cyan", "bright_yellow")
_KEY_WIDTH_MAX = 24
_MORE = "…"


class Lines:
    """Remembers how wide topics and keys were, so that lines stand below each other; each topic has its colour."""

    def __init__(self, width: int | None, coloured: bool) -> None:
        """`width` is that of the terminal; None: lines are as long as they are."""
        self._width = width
        self._coloured = coloured
        self._colours: dict[str, str] = {}
        self._topic_width = self._key_width = 0

    def line(self, record: Shown) -> str:
        topic = f"{record.topic}/{record.partition}"
        key = "" if record.key is None else clipped(escaped(record.key), _KEY_WIDTH_MAX)
        self._topic_width = max(self._topic_width, len(topic))
        self._key_width = max(self._key_width, cells(key))
        time, value = local_time(record.timestamp_ms), escaped(record.value)
        head = [topic.ljust(self._topic_width), key + " " * (self._key_width - cells(key))]
        if self._width is not None:
            taken = len(time) + sum(map(cells, head)) + 2 * len(head) + 2
            value = clipped(value, max(8, self._width - taken))
        if self._coloured:
            time = click.style(time, dim=True)
            head[0] = click.style(head[0], fg=self._colour(record.topic))
            head[1] = click.style(head[1], bold=True)
        return "  ".join([time, *head, value]).rstrip()

    def _colour(self, topic: str) -> str:
        return self._colours.setdefault(topic, COLOURS[len(self._colours) % len(COLOURS)])


def clipped(text: str, width: int) -> str:
    """The beginning of a text that fits into so many cells of a terminal."""
    if len(text) <= width and cells(text) <= width:
        return text
    room = width - len(_MORE)
    for at, letter in enumerate(text):
        room -= cells(letter)
        if room < 0:
            return text[:at] + _MORE
    return text


def cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )


def local_time(timestamp_ms: int | None) -> str:
    """HH:MM:SS.mmm here; dashes if the record has none that makes sense."""
    try:
        moment = datetime.fromtimestamp((timestamp_ms or 0) / 1000).astimezone()
    except (ValueError, OverflowError, OSError):
        moment = None
    if not timestamp_ms or timestamp_ms < 0 or moment is None:
        return "--:--:--.---"
    return moment.strftime("%H:%M:%S.") + f"{timestamp_ms % 1000:03}"

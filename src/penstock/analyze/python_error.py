"""The Python error in Spark's text: its name, its message, and the line of the app that raised it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_HEAD = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s+File "(?P<file>[^"]+)", line (?P<line>\d+)(?:,? in (?P<function>.+))?$')
_LIBRARY = re.compile(r"/lib/python3|/pyspark\.zip/|/penstock/(?!demo/)|^<")
_AFTER = re.compile(r"\s*$|\s+at |\s*\.\.\. \d+ more|\s*SQLSTATE: |Caused by: |Driver stacktrace|=== ")


class PythonError(NamedTuple):
    """One exception of Python's; `where` is the last line outside of libraries, empty if there is none."""

    name: str
    message: str
    where: str

    @property
    def words(self) -> str:
        """The error as Python's last line says it, and where it was raised."""
        said = f"{self.name}: {self.message}" if self.message else self.name
        return f"{said} ({self.where})" if self.where else said


def last_python_error(text: str) -> PythonError | None:
    """The error of the last traceback in a text, None if there is no traceback."""
    _, head, rest = text.rpartition(_HEAD)
    lines = rest.splitlines()[1:]
    begin = next((number for number, line in enumerate(lines) if line and not line[0].isspace()), None)
    if not head or begin is None:
        return None
    end = next((number for number in range(begin + 1, len(lines)) if _AFTER.match(lines[number])), len(lines))
    name, _, message = " ".join(line.strip() for line in lines[begin:end]).partition(": ")
    places = places_in(lines[:begin])
    return PythonError(name, message, places[-1] if places else "")


def places_in(lines: Iterable[str]) -> list[str]:
    """The lines of code in a trace that are in no library, in its order."""
    frames = [found for line in lines if (found := _FRAME.match(line))]
    return [_place(frame) for frame in frames if not _LIBRARY.search(frame["file"])]


def _place(frame: re.Match[str]) -> str:
    file = frame["file"].rpartition("/")[2]
    inside = f", in {frame['function']}" if frame["function"] not in (None, "<module>") else ""
    return f"{file}, line {frame['line']}{inside}"

"""A progress bar for people who wait; one line for logs."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

_WIDTH = 32


class Progress:
    """Says what is under way on standard error; draws a bar only on a terminal."""

    def __init__(self, title: str, total: int) -> None:
        self._title = title
        self._total = total
        self._done = 0
        self._draws = sys.stderr.isatty()

    def __enter__(self) -> Self:
        if self._total:
            sys.stderr.write(self._title + "\n")
            self._draw()
        return self

    def advance(self) -> None:
        """One more is done."""
        self._done += 1
        self._draw()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._draws and self._total:
            sys.stderr.write("\n")

    def _draw(self) -> None:
        if self._draws:
            filled = _WIDTH * self._done // self._total
            sys.stderr.write(f"\r[{'#' * filled:<{_WIDTH}}] {self._done}/{self._total}")
            sys.stderr.flush()

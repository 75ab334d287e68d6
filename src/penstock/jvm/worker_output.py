"""What Spark's JVM and its Python workers print: one file for all queries of a run."""

from __future__ import annotations

from pathlib import Path

_LINES = 3
_CHARS_MAX = 300
_READ_MAX = 4096


class WorkerOutput:
    """The file that the JVM's output goes to; its Python workers inherit it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def size(self) -> int:
        """How much was printed until now."""
        return self._path.stat().st_size if self._path.exists() else 0

    def last_words(self, since: int) -> str:
        """The last lines after the first `since` bytes, in one line; empty if nothing was printed."""
        begin = max(since, self.size - _READ_MAX)
        if self.size <= begin:
            return ""
        with self._path.open("rb") as file:
            file.seek(begin)
            text = file.read(_READ_MAX).decode(errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return " / ".join(lines[-_LINES:])[-_CHARS_MAX:]

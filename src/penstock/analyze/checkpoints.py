"""Where a query goes on: its checkpoint folder, the mode it was begun in, and syncing what Spark does not sync."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from penstock.analyze.exactly_once.batch_tokens import Token, token_of
from penstock.analyze.modes import Choice
from penstock.plan.policies import Mode


class BatchRange(NamedTuple):
    """What a batch of Spark reads, and the watermark by which it drops rows."""

    watermark_ms: int
    starts: dict[str, dict[str, int]]
    ends: dict[str, dict[str, int]]


class Checkpoint:
    """The checkpoint of one query below DATA/analyze/checkpoints."""

    def __init__(self, folder: Path, query: str) -> None:
        self.path = folder / query
        self._mode_file = folder / f"{query}.json"
        self._synced_ns = 0

    @property
    def files(self) -> tuple[Path, ...]:
        """All that it is: who removes these lets the query begin at the start."""
        return self.path, self._mode_file, *((self.table_file,) if self.table_file.exists() else ())

    @property
    def table_file(self) -> Path:
        """What readers have of a query that writes its whole result; it outlives `clear`, as the topic does."""
        return self.path.with_name(f"{self.path.name}.table")

    @property
    def is_begun(self) -> bool:
        """Whether a batch was ever planned in it."""
        offsets = self.path / "offsets"
        return offsets.is_dir() and any(name.name.isdigit() for name in offsets.iterdir())

    @property
    def moved_ns(self) -> int:
        """Another number whenever a batch has been committed in it since; 0 before the first."""
        try:
            return (self.path / "commits").stat().st_mtime_ns
        except OSError:
            return 0

    def positions(self) -> dict[str, dict[int, int]]:
        """Where it goes on, of each topic and partition; empty if nothing was committed."""
        commits = self.path / "commits"
        batches = [int(name.name) for name in commits.iterdir() if name.name.isdigit()] if commits.is_dir() else []
        found: dict[str, dict[int, int]] = {}
        try:
            ranges = _ranges(self.path / "offsets" / str(max(batches)))
        except (OSError, ValueError):
            return found
        for line in ranges:
            with suppress(ValueError, AttributeError):
                for topic, parts in json.loads(line).items():
                    found.setdefault(topic, {}).update({int(part): int(offset) for part, offset in parts.items()})
        return found

    def token(self, batch: int) -> Token:
        """What tells a batch that Spark has planned from every other."""
        query_id: str = json.loads((self.path / "metadata").read_text())["id"]
        return token_of(batch, query_id, _ranges(self.path / "offsets" / str(batch)))

    def range_of(self, batch: int) -> BatchRange | None:
        """What a batch that Spark has planned reads, and its watermark for late rows; None of the first one."""
        try:
            before, now = (self.path / "offsets" / str(number) for number in (batch - 1, batch))
            watermark_ms = int(json.loads(before.read_text().splitlines()[1])["batchWatermarkMs"])
            return BatchRange(watermark_ms, _offsets(before), _offsets(now))
        except FileNotFoundError:
            return None

    def remembered(self) -> Choice | None:
        """The mode it was begun in; None if it was not begun."""
        if not self.is_begun:
            return None
        try:
            kept = json.loads(self._mode_file.read_text())
            mode = Mode(kept["mode"])
            return None if mode is Mode.AUTO else Choice(mode, kept["reason"])
        except (OSError, ValueError, KeyError):
            return None

    def topic_ids(self) -> dict[str, str]:
        """The ids of the topics that it points into; empty if it was not begun."""
        if not self.is_begun:
            return {}
        try:
            ids = json.loads(self._mode_file.read_text()).get("topics", {})
            return dict(ids)
        except (OSError, ValueError):
            return {}

    def remember(self, choice: Choice, topic_ids: Mapping[str, str]) -> None:
        """Keep the mode, and the topics by their ids, beside the checkpoint."""
        self.path.mkdir(parents=True, exist_ok=True)
        new = self._mode_file.with_name(f"{self._mode_file.name}.new")
        new.write_text(json.dumps({"mode": choice.mode, "reason": choice.reason, "topics": dict(topic_ids)}))
        _sync(new)
        os.replace(new, self._mode_file)
        _sync(self.path.parent)

    def clear(self) -> None:
        """Forget everything: the next start is the first."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._mode_file.unlink(missing_ok=True)
        self._synced_ns = 0

    def sync(self) -> None:
        """Make durable what was written since the last time: Spark itself syncs nothing."""
        newest = self._synced_ns
        for folder, _, files in os.walk(self.path):
            changed = False
            for name in files:
                path = Path(folder, name)
                try:
                    written_ns = path.stat().st_mtime_ns
                    if written_ns >= self._synced_ns:
                        _sync(path)
                        changed = True
                        newest = max(newest, written_ns)
                except FileNotFoundError:
                    continue  # Spark cleaned it away meanwhile
            if changed:
                _sync(Path(folder))
        self._synced_ns = newest


def switch_fault(asked: Mode, remembered: Choice | None, against: str | None = None) -> str | None:
    """Why the mode asked for cannot go on from the checkpoint that is there, or None."""
    if remembered is not None and against is not None and remembered.mode is Mode.REALTIME:
        return (
            "its checkpoint was begun in real time, and exactly-once needs micro-batches: give the query another name "
            "and another topic to write, to begin anew"
        )
    if remembered is None or asked is Mode.AUTO or asked is remembered.mode:
        return None
    words = {Mode.REALTIME: "real time", Mode.MICROBATCH: "micro-batches"}
    return (
        f"its checkpoint was begun in {words[remembered.mode]}, and Spark cannot go on from it in {words[asked]}: "
        f"say mode='{remembered.mode}', or give the query another name to begin anew"
    )


def _offsets(file: Path) -> dict[str, dict[str, int]]:
    """Topic, partition, offset; a topic that is read twice has the offsets of the first source."""
    found: dict[str, dict[str, int]] = {}
    for line in _ranges(file):
        with suppress(ValueError, AttributeError):
            for topic, parts in json.loads(line).items():
                found.setdefault(topic, parts)
    return found


def _ranges(offsets: Path) -> list[str]:
    return offsets.read_text().splitlines()[2:]  # a version and the batch's settings come first


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

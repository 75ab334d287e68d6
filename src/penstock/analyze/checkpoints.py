"""Where a query goes on: its checkpoint folder, what is kept beside it, and syncing what Spark does not sync."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from penstock.analyze.exactly_once.batch_tokens import Token, token_of
from penstock.analyze.fingerprint.comparison import Fingerprint
from penstock.analyze.kept import NEW, Kept, decode_kept, encode_kept
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
        self._kept_file = folder / f"{query}.json"
        self._synced_ns = 0
        self._kept: Kept | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """All that it is: who removes these lets the query begin at the start."""
        return self.path, self._kept_file, *((self.table_file,) if self.table_file.exists() else ())

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
        kept = self.kept()
        if not self.is_begun or kept.is_void:
            return None
        try:
            mode = Mode(kept.mode)
        except ValueError:
            return None
        return None if mode is Mode.AUTO else Choice(mode, kept.reason)

    def topic_ids(self) -> dict[str, str]:
        """The ids of the topics that it points into; empty if it was not begun."""
        return dict(self.kept().topics) if self.is_begun else {}

    @property
    def has_started(self) -> bool:
        """Whether the query has started here before."""
        kept = self.kept()
        return self.is_begun or kept.mode != NEW.mode or bool(kept.writes or kept.begin)

    def kept(self) -> Kept:
        """What is kept beside it: read once, since only its own process changes it."""
        if self._kept is None:
            try:
                self._kept = decode_kept(self._kept_file.read_bytes())
            except OSError:
                self._kept = NEW
        return self._kept

    def keep(self, kept: Kept) -> None:
        """Replace what is kept, durably and as a whole: a crash leaves the one before or this one."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self._kept_file.with_name(f"{self._kept_file.name}.new")
        new.write_bytes(encode_kept(kept))
        _sync(new)
        os.replace(new, self._kept_file)
        _sync(self.path.parent)
        self._kept = kept

    def remember(
        self,
        choice: Choice,
        topic_ids: Mapping[str, str],
        fingerprint: Fingerprint | None = None,
        writes: str = "",
    ) -> None:
        """Keep how it starts now."""
        self.path.mkdir(parents=True, exist_ok=True)
        started = {"mode": str(choice.mode), "reason": choice.reason, "topics": dict(topic_ids)}
        self.keep(replace(self.kept(), **started, fingerprint=fingerprint, writes=writes))  # type: ignore[arg-type]

    def clear(self, *, keeps_start: bool = True) -> None:
        """Forget everything but the orders, and where one of them says to begin: the next start is the first."""
        shutil.rmtree(self.path, ignore_errors=True)
        kept = self.kept()
        if kept != NEW:
            cleared = Kept(writes=kept.writes, is_paused=kept.is_paused, obeyed=kept.obeyed)
            self.keep(replace(cleared, begin=kept.begin, starts=kept.starts) if keeps_start else cleared)
        self._synced_ns = 0

    def renew(self, kept: Kept) -> None:
        """Remove the checkpoint and then keep this; OSError if it cannot be removed as a whole."""
        if self.path.exists():
            shutil.rmtree(self.path)
        self.keep(kept)
        self._synced_ns = 0

    def remove(self) -> None:
        """Remove all of it, what is kept last: a crash leaves something by which it is found."""
        if self.path.exists():
            shutil.rmtree(self.path)
        self.table_file.unlink(missing_ok=True)
        self._kept_file.unlink(missing_ok=True)
        self._kept = None

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


def checkpoint_names(folder: Path) -> list[str]:
    """The queries that have a checkpoint, or something kept, in a folder."""
    if not folder.is_dir():
        return []
    paths = list(folder.iterdir())
    begun = {path.name for path in paths if path.is_dir()}
    return sorted(begun | {path.stem for path in paths if path.suffix == ".json" and not path.is_dir()})


def switch_fault(asked: Mode, remembered: Choice | None, against: str | None = None) -> str | None:
    """Why the mode asked for cannot go on from the checkpoint that is there, or None."""
    if remembered is not None and against is not None and remembered.mode is Mode.REALTIME:
        return f"its checkpoint was begun in real time, and it needs micro-batches now ({against})"
    if remembered is None or asked is Mode.AUTO or asked is remembered.mode:
        return None
    words = {Mode.REALTIME: "real time", Mode.MICROBATCH: "micro-batches"}
    return (
        f"its checkpoint was begun in {words[remembered.mode]}, and Spark cannot go on from it in {words[asked]}: "
        f"say mode='{remembered.mode}', or let it start from another place"
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

"""Jars by coordinate, pinned by SHA-256, fetched once into the user's cache."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.errors import ConfigError
from penstock.process.cache import only_one

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


SPARK_LOCK = Path(__file__).with_name("spark.jars")

_LINE = re.compile(r"([\w.-]+):([\w.-]+):([\w.-]+) ([0-9a-f]{64})")
_FETCHES_AT_ONCE = 8  # a registry answers small files slowly one by one; more than this is impolite
_ATTEMPTS = 3
_TIMEOUT_S = 30


@dataclass(frozen=True)
class Jar:
    """One pinned jar."""

    group: str
    artifact: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    def path_in(self, folder: Path) -> Path:
        """Where the cache keeps it."""
        return folder / self.group / f"{self.artifact}-{self.version}.jar"


Fetch = Callable[[Jar, Path], Path]


def read_lock(lock: Path) -> list[Jar]:
    """The jars a lock file pins, in its order; ConfigError names every bad line."""
    jars, faults = [], []
    for number, line in enumerate(lock.read_text("utf-8").splitlines(), start=1):
        match = _LINE.fullmatch(line)
        if match is None:
            faults.append(f"{lock.name} line {number} is not 'group:artifact:version sha256'")
        else:
            jars.append(Jar(*match.groups()))
    if faults:
        raise ConfigError(*faults)
    return jars


def provide_jars(lock: Path, cache: Path, *, fetch: Fetch | None = None) -> list[Path]:
    """Paths of all jars of a lock file, each verified; fetches only what is missing or damaged."""
    jars = read_lock(lock)
    folder = cache / "jars"
    if _missing(jars, folder):
        folder.mkdir(parents=True, exist_ok=True)
        with only_one(folder / "lock"):
            # Another process may have fetched them while this one waited.
            _fetch_all(_missing(jars, folder), folder, fetch or fetch_by_jgo)
    return [jar.path_in(folder) for jar in jars]


def _missing(jars: Sequence[Jar], folder: Path) -> list[Jar]:
    return [jar for jar in jars if not _is_whole(jar, jar.path_in(folder))]


def _is_whole(jar: Jar, path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == jar.sha256
    except FileNotFoundError:
        return False


def _fetch_all(jars: Sequence[Jar], folder: Path, fetch: Fetch) -> None:
    partial = folder / "partial"
    shutil.rmtree(partial, ignore_errors=True)  # left by a process that was killed
    with (
        Progress(f"fetching {len(jars)} jars into {folder}", len(jars)) as progress,
        ThreadPoolExecutor(_FETCHES_AT_ONCE) as pool,
    ):
        try:
            for done in as_completed([pool.submit(_fetch_one, jar, folder, partial, fetch) for jar in jars]):
                done.result()
                progress.advance()
        finally:
            pool.shutdown(cancel_futures=True)
            shutil.rmtree(partial, ignore_errors=True)


def _fetch_one(jar: Jar, folder: Path, partial: Path, fetch: Fetch) -> None:
    fault: Exception | None = None
    for attempt in range(_ATTEMPTS):
        try:
            fetched = fetch(jar, partial / f"{attempt}")
        except (OSError, RuntimeError) as error:
            fault = error
            continue
        if not _is_whole(jar, fetched):
            raise ConfigError(
                f"{jar} does not have the SHA-256 it is pinned to: the registry or the way to it "
                "changed the file, so it was thrown away"
            )
        target = jar.path_in(folder)
        target.parent.mkdir(exist_ok=True)
        os.replace(fetched, target)
        return
    raise ConfigError(f"{jar} could not be fetched ({fault}): check the network and run it again") from fault


def fetch_by_jgo(jar: Jar, folder: Path) -> Path:
    """Download one jar below `folder` from the registry that jgo is set up for."""
    try:
        from jgo.config import GlobalSettings
        from jgo.maven import MavenContext
    except ImportError:
        raise ConfigError("jars are fetched by jgo, which is missing: run pip install 'penstock[java]'") from None
    context = MavenContext(
        repo_cache=folder, remote_repos=GlobalSettings.load().repositories or None, timeout=_TIMEOUT_S
    )
    artifact = context.project(jar.group, jar.artifact).at_version(jar.version).artifact()
    return Path(artifact.resolve())

"""Compiles the hot modules, once for these sources and this Python."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from penstock.errors import ConfigError, PenstockError
from penstock.process.cache import only_one
from penstock.queue.compiled.modules import (
    DIGESTS,
    MODULES,
    PACKAGE,
    SUFFIX,
    compiled_folder,
    digest_of,
    is_whole,
    source_path,
)

_KEPT_MAX = 8  # 2.3 MB each; several, so that several checkouts or Pythons do not throw out each other's
_TOLD_LINES = 20
_LOCK, _MAKING = "lock", "making-"


def missing_tools(environ: Mapping[str, str]) -> list[str]:
    """What this machine lacks to compile, and how to get it."""
    missing = []
    compiler = environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc")
    if shutil.which(compiler.split()[0]) is None:
        missing.append(f"there is no C compiler ({compiler}): install one, or name it in CC")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        missing.append("Python's headers are not there: install them (Debian: python3-dev)")
    for library in ("mypyc", "setuptools"):
        if importlib.util.find_spec(library) is None:
            missing.append(f"{library} is not installed: pip install 'penstock[compile]'")
    return missing


def make_compiled(cache: Path, environ: Mapping[str, str]) -> Path:
    """The folder with the compiled modules, made if it is not there or not whole. ConfigError if it cannot be."""
    folder = compiled_folder(cache)
    if is_whole(folder):
        return folder
    if missing := missing_tools(environ):
        raise ConfigError(*missing)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{folder.parent} cannot be made ({error.strerror}): set PENSTOCK_CACHE") from None
    with only_one(folder.parent / _LOCK):
        _remove_half_made(folder.parent)
        with tempfile.TemporaryDirectory(prefix=_MAKING, dir=folder.parent) as scratch:
            work = Path(scratch, "work")
            _copy_sources(work)
            folder = compiled_folder(cache, work / PACKAGE.name)  # of what was copied, whoever edits meanwhile
            if not is_whole(folder):
                made = _compile(work, environ)
                if folder.is_dir():
                    folder.rename(Path(scratch, "damaged"))
                os.replace(made, folder)
        _forget_old(folder)
    return folder


def _copy_sources(work: Path) -> None:
    """Nothing compiled must come to lie among the sources that are edited, nor where nobody may write."""
    for path in PACKAGE.rglob("*.py"):
        copy = work / path.relative_to(PACKAGE.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def _compile(work: Path, environ: Mapping[str, str]) -> Path:
    """A folder with the compiled modules alone, and what they are to be like."""
    files = [str(source_path(module)) for module in MODULES]
    command = [sys.executable, "-m", "mypyc", "--config-file=", "--ignore-missing-imports", *files]
    said, status = _run(command, work, {**environ, "MYPYC_OPT_LEVEL": "2", "MYPYC_DEBUG_LEVEL": "0"})
    if status != 0:
        last = "\n".join(said.splitlines()[-_TOLD_LINES:])
        raise PenstockError(f"mypyc did not compile the broker; brokers run as before, interpreted:\n{last}")
    made = work.with_name("made")
    lines = []
    for path in sorted([*work.glob(f"*{SUFFIX}"), *(work / PACKAGE.name).rglob(f"*{SUFFIX}")]):
        kept = made / path.relative_to(work)
        kept.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, kept)
        lines.append(f"{digest_of(kept)}  {kept.relative_to(made)}\n")
    (made / DIGESTS).write_text("".join(lines))
    return made


def _run(command: list[str], work: Path, environ: Mapping[str, str]) -> tuple[str, int]:
    """What it said, and its exit status; the compilers that it starts end with us."""
    process = subprocess.Popen(
        command, cwd=work, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = process.communicate()
        return said, process.returncode
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _remove_half_made(parent: Path) -> None:
    """What processes left that were killed."""
    for left in parent.glob(f"{_MAKING}*"):
        shutil.rmtree(left, ignore_errors=True)


def _forget_old(folder: Path) -> None:
    others = [path for path in folder.parent.iterdir() if path not in (folder, folder.parent / _LOCK)]
    others.sort(key=lambda path: (path.stat().st_mtime, path.name), reverse=True)
    for number, old in enumerate(others[_KEPT_MAX - 1 :]):
        # Renamed first: half of one must never be found.
        shutil.rmtree(old.rename(folder.parent / f"{_MAKING}old-{number}"), ignore_errors=True)

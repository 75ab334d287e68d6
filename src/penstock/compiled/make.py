"""Compiles the hot modules, once for these sources and this Python."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock.compiled.modules import MODULES, PACKAGE, SUFFIX, compiled_folder, source_path
from penstock.errors import ConfigError, PenstockError

_KEPT_MAX = 4  # 4 MB each; several, so that several checkouts or Pythons do not throw out each other's
_TOLD_LINES = 20
_LOCK, _MAKING = "lock", "making-"


def refusals(environ: Mapping[str, str]) -> list[str]:
    """What this machine lacks to compile."""
    lacks = []
    compiler = environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc")
    if shutil.which(compiler.split()[0]) is None:
        lacks.append(f"there is no C compiler ({compiler}): install one, or name it in CC")
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        lacks.append("Python's headers are not there: install them (Debian: python3-dev)")
    for library in ("mypyc", "setuptools"):
        if importlib.util.find_spec(library) is None:
            lacks.append(f"{library} is not installed: pip install 'penstock[compile]'")
    return lacks


def make_compiled(cache: Path, environ: Mapping[str, str]) -> Path:
    """The folder with the compiled modules, made if it is not there; a minute of work. ConfigError if it cannot be."""
    folder = compiled_folder(cache)
    if folder.is_dir():
        return folder
    if lacks := refusals(environ):
        raise ConfigError(*lacks)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(folder.parent):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(prefix=_MAKING, dir=folder.parent) as scratch:
                os.replace(_compile(Path(scratch), environ), folder)
            _forget_old(folder)
    return folder


@contextmanager
def _one_at_a_time(parent: Path) -> Iterator[None]:
    """Whoever comes second waits, and finds it made."""
    handle = os.open(parent / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _compile(scratch: Path, environ: Mapping[str, str]) -> Path:
    """Beside a copy of the sources: nothing compiled must come to lie among those that are edited."""
    work, made = scratch / "work", scratch / "made"
    shutil.copytree(PACKAGE, work / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__", f"*{SUFFIX}"))
    files = [str(source_path(module)) for module in MODULES]
    ran = subprocess.run(
        [sys.executable, "-m", "mypyc", "--config-file=", "--ignore-missing-imports", *files],
        cwd=work,
        env={**environ, "MYPYC_OPT_LEVEL": "2", "MYPYC_DEBUG_LEVEL": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        last = "\n".join(ran.stdout.splitlines()[-_TOLD_LINES:])
        raise PenstockError(f"mypyc did not compile the broker; brokers run as before, interpreted:\n{last}")
    for path in [*work.glob(f"*{SUFFIX}"), *(work / PACKAGE.name).rglob(f"*{SUFFIX}")]:
        kept = made / path.relative_to(work)
        kept.parent.mkdir(parents=True, exist_ok=True)
        os.replace(path, kept)
    return made


def _forget_old(folder: Path) -> None:
    """Also what a process left that was killed while it made one."""
    others = [path for path in folder.parent.iterdir() if path not in (folder, folder.parent / _LOCK)]
    left = [path for path in others if path.name.startswith(_MAKING)]
    kept = sorted(set(others) - set(left), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in [*left, *kept[_KEPT_MAX - 1 :]]:
        shutil.rmtree(old, ignore_errors=True)

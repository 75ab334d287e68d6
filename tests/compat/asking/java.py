"""Kafka's own tools, started as cheaply as Java can."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from penstock.process.cache import cache_folder
from proof.oracle.tools import java_command, kafka_class_path

_TOOL_DEADLINE_S = 120.0
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1",)  # a tool ends before the slower compiler pays off
_AT = "--bootstrap-server"


def run_java(main_class: str, *args: str, input: str = "") -> subprocess.CompletedProcess[str]:
    """Run a tool to its end; the exit status is the caller's to judge."""
    ready_made = _ready_made(args[args.index(_AT) + 1]) if _AT in args else ()
    return _run(java_command(main_class, *args, flags=(*_SHORT_LIVED, *ready_made)), input)


@functools.cache
def _ready_made(address: str) -> tuple[str, ...]:
    """Flags with which a start costs half, if this Java can; a broker is needed the first time."""
    archive = _archive()
    if not archive.exists():
        with suppress(subprocess.TimeoutExpired):
            _make(archive, address)
    # One that does not fit is left aside; without the second flag Java would say so among the tool's words.
    return (f"-XX:SharedArchiveFile={archive}", "-Xlog:disable") if archive.exists() else ()


def _archive() -> Path:
    """Where most classes of the tools lie ready-made, for this Java and these jars."""
    parts = [os.path.realpath(java_command("")[0])]
    for jar in kafka_class_path().split(os.pathsep):
        parts.append(f"{jar} {os.stat(jar).st_mtime_ns}")
    name = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return cache_folder(os.environ) / "classes" / f"kafka-tools-{name}.jsa"


def _make(archive: Path, address: str) -> None:
    """Let Java write down what it loads when it lists the topics of a broker, and keep that."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    names, own = (archive.with_suffix(f".{os.getpid()}.{kind}") for kind in ("names", "jsa"))
    tool = ("org.apache.kafka.tools.TopicCommand", _AT, address, "--list")
    _run(java_command(*tool, flags=(*_SHORT_LIVED, f"-XX:DumpLoadedClassList={names}")), "")
    if names.exists():
        kept = ("-Xshare:dump", f"-XX:SharedClassListFile={names}", f"-XX:SharedArchiveFile={own}", "-Xlog:disable")
        _run(java_command(*tool, flags=(*_SHORT_LIVED, *kept)), "")
        names.unlink()
    if own.exists():
        own.rename(archive)


def _run(command: list[str], input: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=input, capture_output=True, text=True, timeout=_TOOL_DEADLINE_S, check=False)

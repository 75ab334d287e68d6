"""An archive of the classes that Spark loads (AppCDS), so that the next start need not parse them again."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

_KEPT_MAX = 2  # 200 MB each; two, so that two Javas or two environments do not throw out each other's
_PR_SET_PDEATHSIG = 1


class ClassArchive:
    """The archive for one Java and one class path, below the user's cache."""

    def __init__(self, cache: Path, java: Path, class_path: Sequence[Path]) -> None:
        self._folder = cache / "classes"
        self.path = self._folder / f"{_fingerprint(java, class_path)}.jsa"

    def flags(self, class_list: Path) -> list[str]:
        """What Java is told: use the archive, or, while there is none, write the list it can be made from."""
        if self.path.exists():
            return [f"-XX:SharedArchiveFile={self.path}", "-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
        class_list.unlink(missing_ok=True)
        return [f"-XX:DumpLoadedClassList={class_list}"]

    def forget(self) -> None:
        """Throw it away, because a JVM did not live with it."""
        self.path.unlink(missing_ok=True)

    def begin(self, command: Sequence[str], class_list: Path) -> ArchiveMaking | None:
        """Make it in a process of the lowest priority; None if it is there or another process makes it."""
        if self.path.exists() or not class_list.exists():
            return None
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(self._folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        return ArchiveMaking(self.path, command, class_list, lock)


class ArchiveMaking:
    """An archive being made; it ends with this process, and then leaves nothing that counts."""

    def __init__(self, path: Path, command: Sequence[str], class_list: Path, lock: int) -> None:
        self._path = path
        self._partial = path.with_suffix(".partial")
        self._partial.unlink(missing_ok=True)
        self._lock = lock
        listed = class_list.with_suffix(".whole")
        # The JVM still writes to it: what follows the last line break is half a line.
        listed.write_bytes(class_list.read_bytes().rpartition(b"\n")[0] + b"\n")
        flags = ["-Xshare:dump", f"-XX:SharedClassListFile={listed}", f"-XX:SharedArchiveFile={self._partial}"]
        self._process = subprocess.Popen(
            [command[0], *flags, "-Xlog:disable", "-Xlog:all=off", *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_be_humble,
        )

    def poll(self) -> bool:
        """Whether it is over; then the archive is there, unless it failed."""
        status = self._process.poll()
        if status is None:
            return False
        if status == 0 and self._partial.exists():
            os.replace(self._partial, self._path)
            archives = sorted(self._path.parent.glob("[0-9a-f]*.jsa"), key=lambda path: path.stat().st_mtime)
            for old in archives[:-_KEPT_MAX]:
                old.unlink(missing_ok=True)
        os.close(self._lock)
        return True

    def end(self) -> None:
        """Stop making it."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
            os.close(self._lock)
            self._partial.unlink(missing_ok=True)


def _fingerprint(java: Path, class_path: Sequence[Path]) -> str:
    """Java refuses an archive when a jar has another size or time than it had: so does the name."""
    home = java.resolve().parent.parent
    parts = []
    for path in (home / "release", home / "lib" / "server" / "libjvm.so", *class_path):
        facts = path.stat() if path.exists() else None
        parts.append(f"{path} {facts.st_size} {facts.st_mtime_ns}" if facts else f"{path}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _be_humble() -> None:
    os.nice(19)
    if sys.platform == "linux":
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

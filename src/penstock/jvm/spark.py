"""Spark's JVM, started directly: Spark's own scripts start one JVM only to print the command of the next."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from penstock.errors import ConfigError, PenstockError
from penstock.jvm.compiler_priority import yield_to_work
from penstock.jvm.jars import SPARK_LOCK, provide_jars
from penstock.jvm.unsigned_jars import unsigned_copy
from penstock.process.cache import cache_folder

_LOGGING = Path(__file__).with_name("spark.log4j2.properties")
_MAIN_CLASS = "org.apache.spark.api.python.PythonGatewayServer"
_OPENED = (
    "java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect", "java.base/java.io",
    "java.base/java.net", "java.base/java.nio", "java.base/java.util", "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic", "java.base/jdk.internal.ref", "java.base/sun.nio.ch",
    "java.base/sun.nio.cs", "java.base/sun.security.action", "java.base/sun.util.calendar",
    "java.security.jgss/sun.security.krb5",
)  # fmt: skip
# Spark's own list, but for the module jdk.incubator.vector: small Javas do not have it, and only Spark's ML uses it.
_FLAGS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "--sun-misc-unsafe-memory-access=allow",
    "--enable-native-access=ALL-UNNAMED",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Djava.awt.headless=true",
    "-XX:-UsePerfData",  # a file in the system's temp folder, which a kill -9 leaves there
)
# Those of Spark's jars that are signed: its compiler of generated code, 370 classes on the way to the first result.
_SIGNED = ("janino-", "commons-compiler-")
_START_DEADLINE_S = 120.0
_POLL_S = 0.01
_ENDING_S = 1.0
_PR_SET_PDEATHSIG = 1


class SparkJvm:
    """A JVM of Spark that PySpark can connect to. It dies with this process, also by kill -9."""

    def __init__(self, command: Sequence[str], output: Path, folder: Path, *, keep_open: Sequence[int] = ()) -> None:
        """Starts it, from the main thread; what it prints goes to `output`; it holds the files `keep_open`.

        The secret it tells lies below `folder`, where only this user reads it: a kill -9 leaves it there.
        """
        self._folder = tempfile.TemporaryDirectory(prefix="gateway-", dir=folder)
        self._info = Path(self._folder.name, "gateway")
        self._output = output
        with output.open("wb") as printed:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=subprocess.STDOUT,
                env=os.environ | _environment(self._info),
                pass_fds=keep_open,
                preexec_fn=_die_with_parent,
            )

    def gateway(self, *, compiler_yields: bool) -> tuple[int, str]:
        """Port and secret for PySpark, once it listens; PenstockError if it does not.

        `compiler_yields`: the optimizing compiler gives way to whatever else the JVM does, for good.
        """
        deadline = time.monotonic() + _START_DEADLINE_S
        has_yielded = not compiler_yields
        while not self._info.exists():
            has_yielded = has_yielded or yield_to_work(self.process.pid)
            try:
                status = self.process.wait(_POLL_S)
            except subprocess.TimeoutExpired:
                if time.monotonic() > deadline:
                    raise PenstockError(f"Spark's JVM did not answer within {_START_DEADLINE_S:.0f} s") from None
            else:
                said = self._output.read_text(errors="replace")[-1000:].strip()
                raise PenstockError(f"Spark's JVM ended with status {status} at its start: {said}")
        told = self._info.read_bytes()
        length = int.from_bytes(told[4:8], "big")
        return int.from_bytes(told[:4], "big"), told[8 : 8 + length].decode()

    @property
    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def ends_soon(self) -> bool:
        """Whether it has ended, or does within a moment."""
        try:
            self.process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        """kill -9, and wait until it is gone: a clean end of Spark keeps nothing that this one loses."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
        self._folder.cleanup()


def spark_home() -> Path:
    """The folder of the pyspark package, which carries Spark; ConfigError if it is not installed."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise ConfigError("queries run on Spark, which is missing: run pip install 'penstock[spark]'")
    return Path(found.origin).parent


def spark_class_path(*, with_ml: bool = False) -> list[Path]:
    """Spark's own jars and those of its Kafka connector, fetched if need be, always in the same order."""
    own = sorted((spark_home() / "jars").glob("*.jar"))
    if not with_ml:
        # Every session registers its functions by reflection: 2 s before the first query is even read.
        own = [jar for jar in own if not jar.name.startswith("spark-mllib_")]
    # Spark wants this one before all that carry an older copy of it.
    own.sort(key=lambda jar: not jar.name.startswith("slf4j-api"))
    cache = cache_folder(os.environ)
    plain = [unsigned_copy(jar, cache) if jar.name.startswith(_SIGNED) else jar for jar in own]
    return [*plain, *provide_jars(SPARK_LOCK, cache)]


def spark_command(java: Path, class_path: Sequence[Path], *, memory: str, log: Path, tmp: Path) -> list[str]:
    """The command of a JVM that lets PySpark connect; what it would leave in the system's temp folder is in `tmp`."""
    return [
        str(java),
        f"-Xmx{memory}",
        "-Xss4m",  # Spark matches regular expressions on long texts, which nest deeply
        *_FLAGS,
        f"-Dlog4j2.configurationFile={_LOGGING}",
        f"-Dpenstock.log={log}",
        f"-Djava.io.tmpdir={tmp}",
        "-cp",
        os.pathsep.join(map(str, class_path)),
        _MAIN_CLASS,
    ]


def _environment(info: Path) -> dict[str, str]:
    return {
        "_PYSPARK_DRIVER_CONN_INFO_PATH": str(info),
        "SPARK_HOME": str(spark_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",  # its pages have no authentication
        "PYSPARK_PYTHON": sys.executable,  # another Python fails in confusing ways
    }


def _die_with_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    if sys.platform == "linux":
        # Its own watch on standard input runs shutdown hooks first, while the next one may have started already.
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

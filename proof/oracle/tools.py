"""Runs Kafka's own programs from the pinned jars."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from penstock.jvm.jars import provide_jars
from penstock.jvm.java import find_java
from penstock.process.cache import cache_folder

KAFKA_LOCK = Path(__file__).with_name("kafka.jars")
_TOOLS_LOGGING = Path(__file__).with_name("tools.log4j2.properties")

# What Kafka's own start scripts pass: a bench beside other flags would be unfair to it.
_JVM_FLAGS = (
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
    "--enable-native-access=ALL-UNNAMED",  # not from there: newer Javas warn about the codecs without it
)


@functools.cache
def kafka_class_path() -> str:
    """All jars of Apache Kafka and its tools, fetched if need be, as java's -cp wants them."""
    return os.pathsep.join(str(path) for path in provide_jars(KAFKA_LOCK, cache_folder(os.environ)))


def java_command(
    main_class: str,
    *args: str,
    heap: str = "512m",
    java: Path | None = None,
    logging: Path = _TOOLS_LOGGING,
    flags: Sequence[str] = (),
) -> list[str]:
    """The command that runs a main class of the Kafka jars; `flags` are for Java itself."""
    return [
        str(java or find_java(os.environ)),
        *_JVM_FLAGS,
        f"-Xmx{heap}",
        f"-Dlog4j2.configurationFile={logging}",
        *flags,
        "-cp",
        kafka_class_path(),
        main_class,
        *args,
    ]


def run_tool(
    main_class: str,
    *args: str,
    input: str | None = None,
    timeout: float = 60,
    heap: str = "512m",
    java: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's tools to its end; the exit status is the caller's to judge."""
    return subprocess.run(
        java_command(main_class, *args, heap=heap, java=java),
        # Without input a tool that reads would wait at our own terminal.
        input=input if input is not None else "",
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )

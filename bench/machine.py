"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

from bench.latency_consumer import percentile
from penstock.config.broker import BrokerConfig
from penstock.config.layers import load_config
from penstock.jvm.java import find_java, java_version
from penstock.queue.compiled.modules import find_compiled

_SYNCS = 300
_WRITE_BYTES = 16 * 1024


def describe_machine(folder: Path) -> dict[str, str]:
    """Processor, memory, kernel, file system and the time of one fdatasync there."""
    p50, p99 = fdatasync_us(folder)
    busy, *_ = os.getloadavg()
    return {
        "cpu": _cpu_model(),
        "cores": str(os.cpu_count()),
        "memory": f"{os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') / 1e9:.1f} GB",
        "kernel": f"{platform.system()} {platform.release()}",
        "file system": _file_system(folder),
        "fdatasync of 16 KiB": f"p50 {p50:.0f} us, p99 {p99:.0f} us",
        "python": platform.python_version(),
        "our broker": "compiled" if _is_compiled() else "interpreted",
        "java": _java_version(),
        "load average before": f"{busy:.1f}",
    }


def fdatasync_us(folder: Path) -> tuple[float, float]:
    """p50 and p99 of an appending write and its fdatasync."""
    path = folder / "fdatasync.probe"
    times = []
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
    try:
        for _ in range(_SYNCS):
            os.write(handle, bytes(_WRITE_BYTES))
            begun = time.perf_counter_ns()
            os.fdatasync(handle)
            times.append(time.perf_counter_ns() - begun)
    finally:
        os.close(handle)
        path.unlink()
    times.sort()
    return percentile(times, 0.5) / 1000, percentile(times, 0.99) / 1000


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


def _file_system(folder: Path) -> str:
    path = folder.resolve()
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    return max((len(point), kind) for point, kind in mounts if path.is_relative_to(point))[1]


def _java_version() -> str:
    return str(java_version(find_java(os.environ)))


def _is_compiled() -> bool:
    config, _ = load_config(Path.cwd(), os.environ, {}, BrokerConfig)
    return config.compiled and find_compiled(os.environ) is not None

"""What a running broker uses, from /proc."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Places in /proc/PID/stat, counted from behind the name in parentheses (proc_pid_stat(5)).
_UTIME, _STIME, _START = 11, 12, 19


def resident_bytes(pid: int) -> int:
    """Memory in use by a process and its children."""
    return sum(int(_proc(one, "statm").split()[1]) * _PAGE_BYTES for one in _family(pid))


def cpu_seconds(pid: int) -> float:
    """Processor time used so far by a process and its children."""
    stats = [_stat(one) for one in _family(pid)]
    return sum(int(stat[_UTIME]) + int(stat[_STIME]) for stat in stats) / _TICKS_PER_S


def start_since_boot_s(pid: int) -> float:
    """When a process began, on CLOCK_BOOTTIME."""
    return int(_stat(pid)[_START]) / _TICKS_PER_S


def _family(pid: int) -> list[int]:
    children = [int(child) for child in _proc(pid, f"task/{pid}/children").split()]
    return [pid, *(one for child in children for one in _family(child))]


def _stat(pid: int) -> list[str]:
    return _proc(pid, "stat").rpartition(")")[2].split()


def _proc(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()

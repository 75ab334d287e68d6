"""Spark's compiler works in what time is left."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.jvm.compiler_priority import yield_to_work

needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads have names in /proc only")
TWO_THREADS = """
import ctypes, sys, threading
def work():
    ctypes.CDLL(None).prctl(15, b"C2 CompilerThread0", 0, 0, 0)
    print(threading.get_native_id(), flush=True)
    sys.stdin.read()
threading.Thread(target=work).start()
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    """A process with a thread of the compiler's name, and its main one."""
    with subprocess.Popen(
        [sys.executable, "-c", TWO_THREADS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.kill()


@needs_proc
def test_only_the_optimizing_compiler_yields(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    compiler = int(process.stdout.readline())
    before = os.getpriority(os.PRIO_PROCESS, process.pid)
    assert yield_to_work(process.pid)
    assert os.getpriority(os.PRIO_PROCESS, compiler) == 19
    assert os.getpriority(os.PRIO_PROCESS, process.pid) == before


@needs_proc
def test_a_process_without_compiler_is_left_as_it_is() -> None:
    assert not yield_to_work(os.getpid())


def test_a_process_that_is_gone_harms_nobody() -> None:
    assert not yield_to_work(2**22 + 1)

"""Kafka's own tools, started as cheaply as Java can."""

from __future__ import annotations

import subprocess

from penstock.jvm.tools import java_command

_TOOL_DEADLINE_S = 120.0
_SHORT_LIVED = ("-XX:TieredStopAtLevel=1",)  # a tool ends before the slower compiler pays off


def run_java(main_class: str, *args: str, input: str = "") -> subprocess.CompletedProcess[str]:
    """Run a tool to its end; the exit status is the caller's to judge."""
    command = java_command(main_class, *args, flags=_SHORT_LIVED)
    return subprocess.run(command, input=input, capture_output=True, text=True, timeout=_TOOL_DEADLINE_S, check=False)

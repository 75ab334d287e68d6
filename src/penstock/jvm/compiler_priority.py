"""The JVM's optimizing compiler works in what time is left: a start has none, and later it is not felt.

For queries in real time only: who catches up in micro-batches keeps every processor busy, so that no time is left, and
does 210,000 events a second with a compiler of the usual priority and 150,000 with this one.

To the first result 10.0 s instead of 11.6 with two processors, on a busy machine. To compile later (ten times
Tier4InvocationThreshold) is as quick, but then what a query does with each event stays slow: 4.0 ms instead of 2.5 to
3.1.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_OPTIMIZER = "C2 CompilerThre"  # as Linux cuts the name of the thread
_NICE = 19


def yield_to_work(pid: int) -> bool:
    """Give the compiler threads of this JVM the least priority; False if there is none (yet).

    One that the JVM adds later may keep the usual priority. Without /proc nothing is changed.
    """
    found = False
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError, ValueError):
                if (task / "comm").read_text().startswith(_OPTIMIZER):
                    os.setpriority(os.PRIO_PROCESS, int(task.name), _NICE)
                    found = True
    return found

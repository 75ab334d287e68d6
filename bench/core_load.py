"""A process that steps a node on a disk in memory, compiled where that was done: AT_ONCE REQUESTS."""

from __future__ import annotations

import json
import os
import sys

from penstock.queue.compiled.use import use_compiled

if __name__ == "__main__":
    use_compiled(os.environ)
    from bench.core_steps import request_us

    print(json.dumps({"us": request_us(*map(int, sys.argv[1:]))}))

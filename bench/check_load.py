"""A process that steps batches through a node: RECORD_BYTES CODEC CHECKS STEPS COMPILED; processor time of one."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time

from penstock.queue.compiled.use import use_compiled

_SLICE = 50  # requests; the median slice leaves out the moments in which the machine did something else


def main() -> None:
    """Print what a request took."""
    record_bytes, codec, checks, steps, compiled = map(int, sys.argv[1:])
    if compiled and not use_compiled(os.environ):
        raise SystemExit("the broker is not compiled: run 'penstock compile'")
    from bench.core_steps import answers_of, node_with_topic, produce_events

    now_ms = int(time.time() * 1000)
    node = node_with_topic(now_ms, {} if checks else {"penstock.check.records": "false"})
    events = produce_events(record_bytes, codec, now_ms)
    slices = []
    for _ in range(steps // _SLICE):
        begun = time.process_time_ns()
        answered = answers_of(node, events, _SLICE, now_ms)
        slices.append(time.process_time_ns() - begun)
        if answered != _SLICE:
            raise SystemExit(f"the core answered {answered} of {_SLICE} requests")
    print(json.dumps({"us": statistics.median(slices) / _SLICE / 1000}))


if __name__ == "__main__":
    main()

"""python -m penstock.analyze SPEC: the queries of a run, in a process of their own."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from penstock.errors import ConfigError, PenstockError
from penstock.plan.run_spec import LEASED
from penstock.process.lifeline import die_with_parent
from penstock.process.run_spec_file import read_spec
from penstock.process.supervisor_orders import Orders


def main() -> int:
    """Run until SIGTERM; 2 if the app or the configuration is wrong, 1 if Spark ended."""
    orders = Orders()
    die_with_parent(lambda line: orders.take(line, time.monotonic()))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's to handle
    from penstock.analyze.conductor import run_queries

    try:
        return run_queries(read_spec(Path(sys.argv[1])), orders if LEASED in sys.argv[2:] else None)
    except ConfigError as wrong:
        sys.stderr.write("".join(f"penstock: {fault}\n" for fault in wrong.faults))
        return 2
    except PenstockError as failed:
        sys.stderr.write(f"penstock: {failed}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())

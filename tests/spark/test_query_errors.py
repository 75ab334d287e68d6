"""An error in a Python function of the app is told in its last line, wherever people look."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving.analyze import APPS, Analyze
from driving.records import Record, read, send

from penstock.drills.broker_process import BrokerProcess

SOURCE = (APPS / "raising.py").read_text().splitlines()


def line_of(code: str) -> int:
    return next(number for number, line in enumerate(SOURCE, start=1) if code in line)


REASONS = {
    "divides": f"ZeroDivisionError: division by zero (raising.py, line {line_of('1 / n')}, in share)",
    "divides_once": f"ZeroDivisionError: division by zero (raising.py, line {line_of('2 / n')}, in share)",
    "imports": "ModuleNotFoundError: No module named 'no_such_module' "
    f"(raising.py, line {line_of('import_module(')}, in score)",
    "divides_in_pandas": f"ZeroDivisionError: division by zero (raising.py, line {line_of('4 / each')}, in <lambda>)",
    "divides_beside": "ZeroDivisionError: division by zero (raising_beside.py, line 5, in third)",
    "divides_in_batches": f"ZeroDivisionError: integer division or modulo by zero (raising.py, line {line_of('5 //')}, "
    "in batches)",
    "divides_with_state": f"ZeroDivisionError: integer division or modulo by zero (raising.py, line {line_of('6 //')}, "
    "in add)",
    "divides_in_a_processor": "ZeroDivisionError: integer division or modulo by zero "
    f"(raising.py, line {line_of('7 //')}, in handleInputRows)",
    "dies": "the Python worker died; last output of Python workers: the native library ran out of luck",
}


@pytest.fixture(scope="module")
def raising(broker: BrokerProcess, folder: Path) -> Iterator[Analyze]:
    with Analyze("raising.py", broker.address, folder / "data", restarts_max=1) as running:
        send(broker.address, "numbers", [{"id": "zero", "n": 0}])
        yield running


@pytest.mark.parametrize("query", REASONS)
def test_the_last_line_of_a_python_error_is_the_reason(query: str, raising: Analyze, broker: BrokerProcess) -> None:
    """In the run's output, in the topic that the page and the edge read, and in `penstock queries`."""
    reason = f"failed 2 times within 600 s: {REASONS[query]}"
    assert raising.wait_for_line(lambda line: line.startswith(f"query {query}: parked")).endswith(reason)

    def is_parked(record: Record) -> bool:
        return record.json["query"] == query and record.json["state"] == "parked"

    told = read(broker.address, "penstock.queries", lambda found: any(map(is_parked, found)))
    assert next(filter(is_parked, told)).json["reason"] == reason
    command = [sys.executable, "-m", "penstock", "queries", "--broker", broker.address]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert f"{query}: parked: {reason}" in shown

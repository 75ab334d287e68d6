"""`penstock state`: what a query remembers, read from its checkpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.run.test_changed_queries import AMOUNTS, OLD, Bank, command


def test_the_state_of_a_query_is_printed_while_it_runs_and_after(tmp_path: Path) -> None:
    bank = Bank(tmp_path)
    text = bank.file.read_text()
    bank.file.write_text(text + 'bank.sql("plain", "SELECT card, _event FROM STREAM(moves)")\n')
    state = ("state", "totals", "--data", str(bank.app.data))
    with bank.app:
        bank.send(*AMOUNTS)
        bank.wait_total(OLD)
        row = json.loads(command(*state, "--json"))
        assert row["key"] == {"card": "a"}
        assert OLD in row["value"].values()
        assert bank.app.stop() == 0
    assert json.loads(command(*state, "--json", "--key", "card=a")) == row
    assert command(*state, "--json", "--key", "card=b") == ""
    assert str(OLD) in command(*state)
    for words, said in (
        (("totals", "--key", "owner=a"), "the key of the state has no column owner: its columns are card"),
        (("plain",), "plain keeps no state"),
        (("total",), "no query total has run on"),
    ):
        wrong = [sys.executable, "-m", "penstock", "state", *words, "--data", str(bank.app.data)]
        done = subprocess.run(wrong, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr

"""The compiled broker keeps the promises of its source."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.drills.broker_process import BrokerProcess
from penstock.process.cache import cache_folder
from penstock.queue.compiled.make import make_compiled
from penstock.queue.compiled.modules import find_compiled
from proof.abuse.raw_client import PlainClient

SEEDS = 30


@pytest.fixture(scope="module")
def compiled(need_tool: Callable[[str], str]) -> Path:
    """Made by `make test` before; `make check` does not take its minute."""
    need_tool("cc")
    if os.environ.get("PENSTOCK_TEST") == "full":
        return make_compiled(cache_folder(os.environ), os.environ)
    there = find_compiled(os.environ)
    if there is None:
        pytest.skip("not compiled: make compile")
    return there


@pytest.mark.usefixtures("compiled")
def test_the_simulator_finds_nothing_in_the_compiled_broker() -> None:
    """What mypy believes of the types is checked when compiled code runs: a lie raises."""
    ran = subprocess.run(
        [sys.executable, "-m", "proof.sim", "--compiled", "--seeds", str(SEEDS)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "compiled, every promise held" in ran.stdout


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("is_wanted", [True, False])
def test_a_broker_is_compiled_unless_the_operator_says_no(is_wanted: bool, tmp_path: Path) -> None:
    settings = {"compiled": str(is_wanted).lower()}
    with BrokerProcess(tmp_path / "data", tmp_path, settings=settings) as broker, PlainClient(broker.port):
        assert f"is_compiled={str(is_wanted).lower()}" in broker.said


def test_compiled_modules_that_are_damaged_do_not_keep_a_broker_from_its_work(
    compiled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs the sources, and says why."""
    damaged = tmp_path / "cache" / "compiled" / compiled.name
    shutil.copytree(compiled, damaged)
    for library in damaged.glob("*.so"):
        os.truncate(library, library.stat().st_size // 2)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    with BrokerProcess(tmp_path / "data", tmp_path) as broker, PlainClient(broker.port):
        assert "is_compiled=false" in broker.said
        assert "damaged" in broker.said

"""What the README shows is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.config.broker import BrokerConfig
from penstock.process.free_port import free_port

DEADLINE_S = 60.0
SECTION = (Path(__file__).parents[2] / "README.md").read_text().split("## The queue alone\n")[1].split("\n## ")[0]
SHELL = SECTION.split("```\n")[1]
PYTHON = re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)


def steps(transcript: str) -> list[tuple[str, str]]:
    """Each command with the output shown below it."""
    found = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", transcript, re.MULTILINE)
    return [(command, shown) for command, shown in found]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """A shell that has our command on its path and no settings of its own."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return own | {"PATH": f"{Path(sys.executable).parent}:{own['PATH']}"}


@pytest.fixture
def address(tmp_path: Path, environ: dict[str, str]) -> Iterator[str]:
    """The first command of the README, in a folder and on a port of its own; it says what is shown."""
    address = f"127.0.0.1:{free_port()}"
    command, shown = steps(SHELL)[0]
    assert command.endswith(" &")
    words = command.removesuffix(" &").replace(BrokerConfig().listen, address).split()
    with subprocess.Popen(words, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, text=True) as broker:
        try:
            assert broker.stdout is not None
            assert broker.stdout.readline() == shown.replace(BrokerConfig().listen, address)
            yield address
        finally:
            broker.terminate()
            assert broker.wait(DEADLINE_S) == 0


def test_a_minute_of_use_goes_as_the_readme_shows(tmp_path: Path, address: str, environ: dict[str, str]) -> None:
    """Every command of the transcript prints the lines below it; the Python beside it runs."""
    followed = steps(SHELL)[1:]
    assert len(followed) == 3
    for command, shown in followed:
        assert run(["sh", "-c", command], tmp_path, environ | {"PENSTOCK_ADDRESS": address}) == shown
    written, read = (text.replace(BrokerConfig().listen, address) for text in PYTHON)
    assert run([sys.executable, "-c", written], tmp_path, environ) == ""
    assert run([sys.executable, "-c", read], tmp_path, environ).count("4711") == 2


def run(words: list[str], folder: Path, environ: dict[str, str]) -> str:
    """What a reader of the terminal sees; the command ended well."""
    done = subprocess.run(
        words, cwd=folder, env=environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    return done.stdout

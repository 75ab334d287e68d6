"""`penstock demo`, and the README's purchase at its desk as at the README's own app."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from http.client import HTTPConnection
from pathlib import Path
from sysconfig import get_path
from typing import Any

import pytest

from penstock.drills.app_process import AppProcess
from penstock.drills.recording_clients import read_topic
from tests.run.desk import Desk

DEADLINE_S = 120.0
ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
(APP,) = re.findall(r"```python\n# shop.py\n(.*?)```", README, re.DOTALL)
(CURL,) = re.findall(r"^\$ (curl .*\\\n.*)$", README, re.MULTILINE)
ANSWER = {
    "id": "p-1",
    "card": "4711",
    "amount": 950.0,
    "country": "US",
    "decision": "declined",
    "reason": "abroad",
}


def answer_of(port: int) -> Any:
    """What the README's curl prints; on a slow machine the decision comes with one of the next."""
    command = CURL.replace(":8080/", f":{port}/")
    assert command != CURL
    deadline = time.monotonic() + DEADLINE_S
    while True:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=DEADLINE_S, check=True)
        answer = json.loads(done.stdout)
        if "result" in answer:
            return answer["result"]
        assert time.monotonic() < deadline, answer


def test_the_purchase_of_the_readme_is_declined_by_its_app(tmp_path: Path, need_tool: Callable[[str], str]) -> None:
    need_tool("curl")
    (tmp_path / "shop.py").write_text(APP)
    with AppProcess(str(tmp_path / "shop.py"), tmp_path) as shop:
        assert answer_of(shop.port) == ANSWER


def test_the_purchase_of_the_readme_has_the_same_answer_at_the_demo(
    tmp_path: Path, need_tool: Callable[[str], str]
) -> None:
    """With --rate 0 it is the only one that comes."""
    need_tool("curl")
    with Desk([sys.executable, "-m", "penstock"], tmp_path, "--rate", "0") as desk:
        assert answer_of(desk.port) == ANSWER
        assert {record.key for record in read_topic(desk.queue, "purchases")} == {b"4711"}
        assert desk.stop() == 0
        assert "Traceback" not in desk.said


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has our wheel, and what it depends on, and nothing of this checkout."""
    folder = tmp_path_factory.mktemp("installed")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=DEADLINE_S)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--quiet", "--offline", "--no-deps"]
    subprocess.run([*uv, "--python", str(python), str(wheel)], check=True, timeout=DEADLINE_S)
    # A folder in a .pth file is searched, and its own .pth files, such as that of the checkout, are not read.
    (site,) = folder.glob("venv/lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{get_path('purelib')}\n")
    return python


def test_the_demo_of_an_installed_wheel_decides_purchases(installed: Path, tmp_path: Path) -> None:
    """Without a checkout; a decision arrives at /live/decisions."""
    probe = "import importlib.util, penstock; print(penstock.__file__, importlib.util.find_spec('examples'))"
    found = subprocess.run([installed, "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(installed.parents[1]))
    assert found.stdout.endswith(" None\n")
    with Desk([str(installed.with_name("penstock"))], tmp_path, "--rate", "20", "--seed", "7") as desk:
        connection = HTTPConnection("127.0.0.1", desk.port, timeout=DEADLINE_S)
        connection.request("GET", "/live/decisions?from=beginning")
        stream = connection.getresponse()
        assert stream.status == 200
        while not (line := stream.readline()).startswith(b'data: {"topic":"decisions"'):
            assert line, desk.said
        assert json.loads(line.removeprefix(b"data: "))["value"]["decision"] in ("approved", "declined")
        connection.close()
        assert desk.stop() == 0

"""`penstock demo`, from this checkout and from an installed wheel."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from sysconfig import get_path

import pytest

from penstock.drills.topic_reading import read_topic
from tests.run.desk import Desk

DEADLINE_S = 120.0
ROOT = Path(__file__).parents[2]


def test_a_demo_without_purchases_only_runs(tmp_path: Path) -> None:
    """--rate 0: the one that is sent by hand is the only one."""
    with Desk([sys.executable, "-m", "penstock"], tmp_path, "--rate", "0") as desk:
        connection = HTTPConnection("127.0.0.1", desk.port, timeout=DEADLINE_S)
        purchase = {"id": "p-1", "card": "4711", "amount": 9, "at": datetime.now(UTC).isoformat()}
        connection.request("POST", "/ingest/purchases", json.dumps(purchase), {"Content-Type": "application/json"})
        assert connection.getresponse().status == 202
        connection.close()
        assert [record.key for record in read_topic(desk.queue, "purchases")] == [b"4711"]
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

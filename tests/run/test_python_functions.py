"""Functions and classes of an app reach Spark's workers, or are refused before the start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.drills.app_process import AppProcess
from penstock.drills.recording_clients import read_topic
from penstock.jvm.jars import SPARK_LOCK, provide_jars
from penstock.process.cache import cache_folder
from tests.run.conftest import PLAIN
from tests.run.test_ready_cluster import Cluster
from tests.run.test_supervisor import penstock, post, wait_for

APP = (
    PLAIN
    + """
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from pyspark.sql import functions as F
from pyspark.sql.functions import udf

import beside

with Path(__file__).with_name("importers").open("a") as importers:
    importers.write(f"{os.getpid()} ")

GREETING = "hello"

@dataclass
class Words:
    text: str

def greet(id):
    from package.marks import MARK
    return Words(f"{GREETING} {id}").text + beside.mark(MARK)

@udf("string")
def python(_):
    return sys.executable

@plain.query(reads=clicks, writes="greetings")
def greeted(clicks):
    greeting = F.udf(greet, "string")
    return clicks.select("id", "_event", greeting("id").alias("greeting"), python("id").alias("python"))
"""
)
BESIDE = 'def mark(mark): return f"({mark})"\n'
PACKAGE = {
    "__init__.py": "",
    "marks.py": "from importlib.resources import files\nMARK = (files('package') / 'mark.txt').read_text()\n",
    "mark.txt": "!",
}


def write_app(folder: Path) -> str:
    """An app with a module and a package beside it."""
    (folder / "plain.py").write_text(APP)
    (folder / "beside.py").write_text(BESIDE)
    (folder / "package").mkdir()
    for name, text in PACKAGE.items():
        (folder / "package" / name).write_text(text)
    return str(folder / "plain.py")


def greeting(app: AppProcess) -> dict[str, str]:
    """The result of the only event."""
    assert post(app, "a")
    wait_for(lambda: list(read_topic(app.queue, "greetings")) != [], "the event has a result")
    (record,) = read_topic(app.queue, "greetings")
    found: dict[str, str] = json.loads(record.value or b"")
    return found


def test_functions_of_the_apps_file_work_in_queries(tmp_path: Path) -> None:
    """Also where the PATH has another Python first, as without an activated venv.

    The code of the start is what runs: a file that is edited later changes no result.
    """
    with AppProcess(write_app(tmp_path), tmp_path, environ={"PATH": "/usr/bin:/bin"}) as app:
        (tmp_path / "beside.py").write_text('def mark(mark): return "edited"\n')
        (tmp_path / "package" / "mark.txt").write_text("edited")
        assert greeting(app) == {"id": "a", "greeting": "hello a(!)", "python": sys.executable}
        importers = {int(pid) for pid in (tmp_path / "importers").read_text().split()}
        assert importers == {app.pid, app.parts()["analyze"]}, "the edge needs only the plan, and workers not even that"


@pytest.mark.timeout(600)
def test_code_beside_the_app_reaches_the_workers_of_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An executor has a folder of its own, and nothing of the app's on its path."""
    cluster = Cluster(tmp_path)
    try:
        cluster.start_worker()
        jars = ",".join(map(str, provide_jars(SPARK_LOCK, cache_folder(os.environ))))
        settings = f'[analyze]\nmaster = "{cluster.master}"\n[analyze.spark]\n"spark.jars" = "{jars}"\n'
        (tmp_path / "penstock.toml").write_text(settings + '"spark.executor.memory" = "512m"\n')
        monkeypatch.chdir(tmp_path)
        with AppProcess(write_app(tmp_path), tmp_path) as app:
            assert greeting(app) == {"id": "a", "greeting": "hello a(!)", "python": sys.executable}
    finally:
        cluster.close()


REFUSED = (
    PLAIN
    + """
import threading
import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.functions import pandas_udf, udf
from not_on_workers import driver_alone

def name(): return plain.name

@udf("string")
def refers_to_the_app(n): return name()

@pandas_udf("double")
def half(n: pd.Series) -> pd.Series: return n / 2

def late(n):
    import no_such_module
    return n

def careful(n):
    try:
        import no_such_module
    except ImportError:
        return n

@plain.query(reads=clicks, writes="a")
def a(clicks): return clicks.select("id", "_event", refers_to_the_app("n"))

@plain.query(reads=clicks, writes="b")
def b(clicks):
    session = clicks.sparkSession
    return clicks.select("id", "_event", F.udf(lambda n: session.version, "string")("n"))

@plain.query(reads=clicks, writes="c")
def c(clicks):
    class Counter:
        def __init__(self): self.clicks = clicks
        def run(self, frames): return frames
    return clicks.groupBy("id").count().select("id").mapInPandas(Counter().run, "id string")

@plain.query(reads=clicks, writes="d")
def d(clicks):
    lock = threading.Lock()
    def locked(n):
        with lock: return n
    return clicks.select("id", "_event", F.udf(locked, "int")("n"))

@plain.query(reads=clicks, writes="e")
def e(clicks): return clicks.select("id", "_event", F.udf(late, "int")("n"))

@plain.query(reads=clicks, writes="f")
def f(clicks): return clicks.select("id", "_event", F.udf(driver_alone, "int")("n"))

@plain.query(reads=clicks, writes="g")
def g(clicks): return clicks.select("id", "_event", F.udf(careful, "int")("n"), half("n"))
"""
)
NOT_ON_WORKERS = """import sys
if "pyspark.daemon" in sys.modules or sys.argv[0].endswith("daemon.py"):
    raise RuntimeError("this module needs what workers lack")

def driver_alone(n): return n
"""


def line_of(text: str, code: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), start=1) if code in line)


@pytest.mark.parametrize("flags", [["--dry-run"], []], ids=["dry-run", "run"])
def test_a_function_that_cannot_run_on_a_worker_is_refused_before_the_start(tmp_path: Path, flags: list[str]) -> None:
    """By its name and line, in one sentence each; what can run is not."""
    (tmp_path / "plain.py").write_text(REFUSED)
    (tmp_path / "not_on_workers.py").write_text(NOT_ON_WORKERS)
    answer = penstock("run", "plain.py", *flags, folder=tmp_path)
    assert answer.returncode == 2
    advice = "Spark's workers have none. Give the function plain values instead, made outside of it"
    trial = "cannot run on a worker of Spark"
    wanted = [
        f"query a: line {line_of(REFUSED, 'def a')}: the function name refers to plain, which is an App: {advice}",
        f"query b: line {line_of(REFUSED, 'session.version')}: the function b.<locals>.<lambda> refers to session, "
        f"which is a Spark session: {advice}",
        f"query c: line {line_of(REFUSED, 'Counter().run')}: the function c.<locals>.Counter refers to clicks, "
        f"which is a DataFrame: {advice}",
        f"query d: line {line_of(REFUSED, 'F.udf(locked')}: the function d.<locals>.locked refers to lock, "
        "which cannot travel to a worker: TypeError: cannot pickle '_thread.lock' object",
        f"query e: the function late {trial}: ModuleNotFoundError: No module named 'no_such_module' "
        f"(plain.py, line {line_of(REFUSED, 'import no_such')}, in late)",
        f"query f: the function driver_alone {trial}: RuntimeError: this module needs what workers lack "
        "(not_on_workers.py, line 3)",
    ]
    said = answer.stderr if flags else answer.stdout + answer.stderr
    assert [line for line in wanted if line not in said] == [], said
    assert "query g" not in said.replace("query g: clicks -> g", "")
    assert "Traceback" not in said


WITHOUT = """
import sys

class Without:
    def find_spec(self, name, path=None, target=None):
        if name == "google.protobuf" or name == "pandas" and "pandas" in LACKING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Without())
"""
IN_PANDAS = (
    PLAIN
    + """
from pyspark.sql.streaming import StatefulProcessor

class Counting(StatefulProcessor):
    def init(self, handle): pass
    def handleInputRows(self, key, rows, timerValues): return iter(())

@plain.query(reads=clicks, writes="a")
def a(clicks): return clicks.groupBy("id").transformWithState(Counting(), "id string", "update", "none")
"""
)


@pytest.mark.parametrize("lacking", ["pandas", "protobuf"])
def test_a_library_that_a_function_needs_is_named_before_the_start(tmp_path: Path, lacking: str) -> None:
    (tmp_path / "plain.py").write_text(IN_PANDAS)
    (tmp_path / "without").mkdir()
    (tmp_path / "without" / "sitecustomize.py").write_text(f"LACKING = {lacking!r}\n{WITHOUT}")
    command = [sys.executable, "-m", "penstock", "run", "plain.py", "--dry-run"]
    environ = os.environ | {"PYTHONPATH": str(tmp_path / "without")}
    answer = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert answer.returncode == 2, answer.stderr
    assert lacking in answer.stderr.lower()
    assert "run pip install 'penstock[spark]'" in answer.stderr
    assert answer.stderr.count("\n") == 1

"""Functions and classes of an app's own file work in its queries, in the Python that runs the app."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from penstock.drills.app_process import AppProcess
from penstock.drills.recording_clients import read_topic
from tests.run.conftest import PLAIN
from tests.run.test_supervisor import post, wait_for

APP = (
    PLAIN
    + """
import sys
from dataclasses import dataclass
from pyspark.sql import functions as F
from pyspark.sql.types import StringType

import beside

GREETING = "hello"

@dataclass
class Words:
    text: str

def greet(id):
    return Words(f"{GREETING} {id}").text + beside.MARK

def python(_):
    return sys.executable

@plain.query(reads=clicks, writes="greetings")
def greeted(clicks):
    greeting, where = F.udf(greet, StringType()), F.udf(python, StringType())
    return clicks.select("id", "_event", greeting("id").alias("greeting"), where("id").alias("python"))
"""
)


def test_functions_of_the_apps_file_work_in_queries(tmp_path: Path) -> None:
    """Also where the PATH has another Python first, as without an activated venv."""
    (tmp_path / "plain.py").write_text(APP)
    (tmp_path / "beside.py").write_text('MARK = "!"\n')
    with AppProcess(str(tmp_path / "plain.py"), tmp_path, environ={"PATH": "/usr/bin:/bin"}) as app:
        assert post(app, "a")
        wait_for(lambda: list(read_topic(app.queue, "greetings")) != [], "the event has a result")
        (record,) = read_topic(app.queue, "greetings")
        assert json.loads(record.value or b"") == {"id": "a", "greeting": "hello a!", "python": sys.executable}

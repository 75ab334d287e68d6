"""/ready and /metrics of a whole app: green while it works, red with the reason when a query or analyze does not."""

from __future__ import annotations

import json
import os
import re
import signal
from http.client import HTTPConnection
from pathlib import Path
from urllib.request import urlopen

import pytest

from penstock.drills.app_process import AppProcess
from penstock.drills.recording_clients import read_topic
from tests.run.test_supervisor import post, wait_for

APP = """
from penstock import App, sources
from pyspark.sql import functions as F

plain = App("plain")
clicks = plain.topic("clicks", schema="id STRING NOT NULL, n INT", key="id", partitions=2)
plain.ingest(sources.Http(), into=clicks)

@plain.query(reads=clicks, writes="kept")
def keep(clicks): return clicks.select("id", "_event")

@plain.query(reads=clicks, writes="checked", mode="microbatch")
def check(clicks):
    word = F.when(F.col("id") == "bad", F.raise_error(F.lit("a bad click"))).otherwise("good")
    return clicks.groupBy(word.alias("word")).count()
"""
HANGS = """
@plain.query(reads=clicks, writes="passed", mode="microbatch", every="1 second")
def hangs(clicks):
    def wait(id):
        import time
        time.sleep(3600 if id == "stuck" else 0)
        return id
    return clicks.select(F.udf(wait, "string")("id").alias("id"), "_event")
"""


@pytest.fixture
def app(tmp_path: Path) -> AppProcess:
    (tmp_path / "plain.py").write_text(APP)
    return AppProcess(str(tmp_path / "plain.py"), tmp_path, environ={"PENSTOCK_ANALYZE_RESTARTS_MAX": "1"})


def reasons(app: AppProcess) -> list[str]:
    connection = HTTPConnection("127.0.0.1", app.port, timeout=30)
    try:
        connection.request("GET", "/ready")
        answer = connection.getresponse()
        found: list[str] = json.load(answer)["reasons"]
        assert answer.status == (503 if found else 200)
        return found
    finally:
        connection.close()


def metrics(app: AppProcess) -> dict[str, float]:
    with urlopen(f"{app.url}/metrics", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}


def test_ready_is_red_while_a_query_is_parked_or_analyze_hangs_and_metrics_say_the_same(app: AppProcess) -> None:
    with app:
        wait_for(lambda: reasons(app) == [], "it is ready")
        assert post(app, "good")
        wait_for(lambda: len(list(read_topic(app.queue, "checked"))) == 1, "both queries have run")
        of = {"keep": "result", "check": "batch"}
        took = [f'penstock_query_processing_avg_seconds{{query="{name}",of="{what}"}}' for name, what in of.items()]
        wait_for(lambda: all(metrics(app).get(name, 0.0) > 0 for name in took), "processing times are known")
        found = metrics(app)
        assert found["penstock_edge_ready"] == 1
        assert found["penstock_spark_task_slots"] >= 1
        for name in ("keep", "check"):
            assert found[f'penstock_query_state{{query="{name}",state="running"}}'] == 1
            assert found[f'penstock_query_stalled_seconds{{query="{name}"}}'] < 60

        assert post(app, "bad")
        wait_for(lambda: any("query check is parked: " in reason for reason in reasons(app)), "the query is parked")
        (reason,) = reasons(app)
        assert "a bad click" in reason
        assert reason.endswith("remove the cause, then start the app again")
        found = metrics(app)
        assert found['penstock_query_state{query="check",state="parked"}'] == 1
        assert found['penstock_query_restarts_total{query="check"}'] >= 1
        assert found["penstock_edge_ready"] == 0

        jvm = app.parts()["jvm"]
        os.kill(jvm, signal.SIGSTOP)
        try:
            wait_for(lambda: "analyze has not reported" in reasons(app)[0], "analyze that hangs is noticed")
            assert metrics(app)['penstock_query_state{query="keep",state="silent"}'] == 1
        finally:
            os.kill(jvm, signal.SIGCONT)
        wait_for(lambda: "analyze has not reported" not in reasons(app)[0], "analyze reports again")


def test_a_query_that_hangs_in_its_function_is_a_reason_and_one_without_input_is_not(tmp_path: Path) -> None:
    """It neither fails nor ends: only its standstill shows it."""
    (tmp_path / "plain.py").write_text(APP + HANGS)
    limit = {"PENSTOCK_EDGE_STALLED_AFTER_MS": "3000"}
    with AppProcess(str(tmp_path / "plain.py"), tmp_path, environ=limit) as app:
        assert post(app, "good")
        wait_for(lambda: len(list(read_topic(app.queue, "passed"))) == 1, "the event went through")
        wait_for(lambda: reasons(app) == [], "it is ready")
        assert post(app, "stuck")
        wait_for(lambda: any("query hangs has not moved for" in reason for reason in reasons(app)), "it is noticed")
        found = metrics(app)
        name = '{query="hangs"}'
        assert found[f"penstock_query_stalled_seconds{name}"] > found[f"penstock_query_stalled_limit_seconds{name}"]
        assert found[f"penstock_query_lag{name}"] == 1
        assert all("query hangs" in reason for reason in reasons(app))


def test_the_log_that_is_named_after_a_kill_9_of_analyze_says_what_it_did(app: AppProcess) -> None:
    with app:
        assert app.kill_part("analyze")
        wait_for(lambda: "analyze  was ended by SIGKILL; starts again" in app.said, "its end is told")
        named = re.search(r"was ended by SIGKILL; starts again \(log: (.+)\)", app.said)
        assert named is not None
        lines = Path(named[1]).read_text().splitlines()
        (end,) = [number for number, line in enumerate(lines) if "process ended" in line]
        assert 'how="was ended by SIGKILL"' in lines[end]
        assert any("query keep: running, realtime" in line for line in lines[:end])
        assert app.said.index("edge     ready http") > app.said.index("checked: every query can run")

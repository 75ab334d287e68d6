"""The stateful part of a plan as text, from Spark's own plans."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

APP = """
from penstock import App
from pyspark.sql import functions as F

shop = App("shop")
ddl = "card STRING, amount DOUBLE, at TIMESTAMP{more}"
p = shop.topic("purchases", schema=ddl, event_time="at")
r = shop.topic("refunds", schema="card STRING, amount DOUBLE, at TIMESTAMP", event_time="at")
shop.sql("totals", "SELECT {above}card, sum(amount) AS total FROM STREAM(purchases) GROUP BY card{having}")
shop.sql("ctes", "WITH a AS (SELECT * FROM STREAM(purchases)) SELECT card, count(*) AS n FROM a GROUP BY card")
shop.sql("hours", "SELECT window(at, '1 hour') AS w, count(*) AS n FROM STREAM(purchases) GROUP BY 1",
         watermark="{late}")

def double(x):
    return (x or 0) * {factor}

@shop.query(reads=p, writes="big")
def big(x):
    large = x.where(F.udf(double, "double")("amount") > 3)
    return large.groupBy("card").agg(F.count("*").alias("n")).select(F.upper("card").alias("card"), "n")

@shop.query(reads=p, writes="plain")
def plain(x):
    return x.select("_event", F.transform(F.array("card"), lambda y: F.upper(y)).alias("z"))

@shop.query(reads=(p, r), writes="joined", watermark="1 minute")
def joined(a, b):
    near = F.expr("a.card = b.card AND b.at BETWEEN a.at AND a.at + INTERVAL 1 MINUTE")
    return a.alias("a").join(b.alias("b"), near).select("a.card", "a._event"{kept})
"""
BASE = {"more": "", "above": "", "having": "", "late": "1 minute", "factor": "2", "kept": ""}
ASK = """
import json, sys, tempfile
from pathlib import Path
import msgspec
from penstock.analyze.dry_run import _NOWHERE, _spark
from penstock.analyze.fingerprint.of_query import fingerprint_of
from penstock.analyze.jobs import Jobs
from penstock.analyze.modes import Choice
from penstock.config.analyze import AnalyzeConfig
from penstock.config.edge import EdgeConfig
from penstock.guarantee import Queue
from penstock.plan.planner import plan_app
from penstock.plan.policies import Mode
from penstock.plan.run_spec import RunSpec
from penstock.process.app_loader import load_app

app, config = load_app(sys.argv[1]), AnalyzeConfig()
plan = plan_app(app, Queue())
with tempfile.TemporaryDirectory() as folder, _spark(plan, config, Path(folder)) as spark:
    spec = RunSpec(app="", data=folder, queue=_NOWHERE, kind=Queue(), edge=EdgeConfig(), analyze=config)
    jobs, found = Jobs(spec, plan, spark), {}
    for query in plan.queries.values():
        built = jobs.build(query, Choice(Mode.REALTIME))
        found[query.name] = msgspec.to_builtins(fingerprint_of(query, built))
    print("found", json.dumps(found))
"""


def fingerprints(folder: Path, **changed: str) -> dict[str, Any]:
    """Of all queries, by a process and a Spark of its own."""
    file = folder / "shop.py"
    file.write_text(APP.format_map(BASE | changed))
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(file)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("found ")]
    found: dict[str, Any] = json.loads(line.removeprefix("found "))
    return found


def test_the_text_is_the_same_in_each_run_and_changes_with_the_state_alone(tmp_path: Path) -> None:
    first = fingerprints(tmp_path)
    assert fingerprints(tmp_path) == first
    assert first["totals"]["state"] == ["Aggregate [card], [card, sum(amount) AS total]", "  topic purchases"]
    assert first["totals"]["columns"] == {"purchases.amount": "DOUBLE", "purchases.card": "STRING"}
    assert first["ctes"]["state"][-1].strip() == "topic purchases", "a common table is looked into"
    assert first["plain"]["state"] == []
    assert first["joined"]["topics"] == ["purchases", "refunds"]

    second = fingerprints(tmp_path, more=", note STRING", having=" HAVING total > 3", factor="3", late="2 minutes")
    for name in ("totals", "ctes", "plain"):
        assert second[name]["state"] == first[name]["state"]
        assert second[name]["columns"] == first[name]["columns"], "a column that is not used does not count"
    assert second["totals"]["text"] != first["totals"]["text"]
    assert second["big"]["code"] != first["big"]["code"], "a function below the state"
    assert second["hours"]["state"] != first["hours"]["state"], "another watermark"
    assert second["joined"] == first["joined"]

    third = fingerprints(tmp_path, kept=', "b.amount"')
    assert third["joined"]["state"] == first["joined"]["state"]
    assert third["joined"]["columns"].keys() - first["joined"]["columns"].keys() == {"refunds.amount"}

"""`penstock run --dry-run` refuses everything that `penstock run` refuses, and says it in the same sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.drills.app_process import AppProcess
from tests.run.conftest import PLAIN
from tests.run.test_supervisor import penstock

QUERIES = """
from penstock import App, sources

desk = App("desk")
clicks = desk.topic("clicks", schema="id STRING NOT NULL, n INT", key="id")
desk.ingest(sources.Http(), into=clicks)
desk.deliver("DELIVERED")

@desk.query(reads=clicks, writes="kept", spark=SPARK)
def keep(clicks): return clicks.select("COLUMN", "_event")

@desk.query(reads=clicks, writes="counts")
def count(clicks): return clicks.groupBy("id").count()
"""


def queries(*, column: str = "id", delivered: str = "kept", spark: str = "{}") -> str:
    return QUERIES.replace("COLUMN", column).replace("DELIVERED", delivered).replace("SPARK", spark)


def test_the_configuration_is_checked_as_a_run_checks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "penstock.toml").write_text('[broker]\nlisen = "x"\n[edge]\nport = 5\n')
    monkeypatch.setenv("PENSTOCK_EDGE_WAITS_MAX", "abc")
    dry, run = (penstock("run", "plain.py", *flags, folder=tmp_path) for flags in (["--dry-run"], []))
    assert dry.returncode == run.returncode == 2
    assert dry.stderr == run.stderr
    assert "unknown setting lisen, did you mean listen?" in dry.stderr
    assert "unknown setting port" in dry.stderr
    assert "PENSTOCK_EDGE_WAITS_MAX: waits_max must be a whole number, not 'abc'" in dry.stderr


def test_an_open_address_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    flags = ["--listen", "0.0.0.0:9092"]
    dry, run = (penstock("run", "plain.py", *flags, *more, folder=tmp_path) for more in (["--dry-run"], []))
    assert dry.returncode == run.returncode == 2
    assert dry.stderr == run.stderr
    assert "listen 0.0.0.0 can be reached from other machines" in dry.stderr


def test_a_topic_to_adopt_that_the_app_does_not_have_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    dry, run = (
        penstock("run", "plain.py", "--adopt", "clikcs", *more, folder=tmp_path) for more in (["--dry-run"], [])
    )
    assert dry.returncode == run.returncode == 2
    assert dry.stderr == run.stderr
    assert "--adopt clikcs: the app has no such topic, did you mean clicks?" in dry.stderr


def test_a_queue_without_a_port_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    flags = ["--queue", "127.0.0.1:9092,kafka2"]
    dry, run = (penstock("run", "plain.py", *flags, *more, folder=tmp_path) for more in (["--dry-run"], []))
    assert dry.returncode == run.returncode == 2
    assert dry.stderr == run.stderr
    assert "queue: an address is HOST:PORT" in dry.stderr


def test_a_spark_cluster_without_our_jars_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(PLAIN)
    (tmp_path / "penstock.toml").write_text('[analyze]\nmaster = "spark://127.0.0.1:7077"\n')
    dry, run = (penstock("run", "plain.py", *flags, folder=tmp_path) for flags in (["--dry-run"], []))
    assert dry.returncode == run.returncode == 2
    assert dry.stderr == run.stderr
    assert "its executors do not get Penstock's jars: give their paths in [analyze.spark] as spark.jars" in dry.stderr


def test_errors_of_the_plan_do_not_hide_those_that_spark_finds(tmp_path: Path) -> None:
    misspelt = "{'spark.sql.shufle.partitions': 3}"
    (tmp_path / "desk.py").write_text(queries(column="nope", delivered="nowhere", spark=misspelt))
    answer = penstock("run", "desk.py", "--dry-run", folder=tmp_path)
    assert answer.returncode == 2
    assert "delivery /live/nowhere: unknown topic nowhere" in answer.stderr
    assert "query keep: Spark has no setting spark.sql.shufle.partitions, did you mean" in answer.stderr
    (tmp_path / "desk.py").write_text(queries(column="nope", delivered="nowhere"))
    answer = penstock("run", "desk.py", "--dry-run", folder=tmp_path)
    assert "delivery /live/nowhere: unknown topic nowhere" in answer.stderr
    assert "query keep: line 10: AnalysisException: [UNRESOLVED_COLUMN" in answer.stderr


def test_the_mode_and_the_meaning_that_spark_found_are_printed(tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(queries())
    answer = penstock("run", "desk.py", "--dry-run", folder=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "query    keep: clicks -> kept (realtime), emit='changes': append\n" in answer.stdout
    assert ", emit='changes': upsert by id\n" in answer.stdout
    assert "(auto)" not in answer.stdout
    answer = penstock("run", "desk.py", "--dry-run", "--json", folder=tmp_path)
    found = json.loads(answer.stdout)["checked"].values()
    assert [(one["kind"], one["key"]) for one in found] == [("append", None), ("upsert", ["id"])]


def test_differences_to_the_queue_are_printed_while_it_runs_and_when_it_does_not(plain: AppProcess) -> None:
    """The partitions of an app were changed after its first run."""
    folder = plain.data.parent
    (folder / "plain.py").write_text(PLAIN.replace("partitions=2", "partitions=3"))
    told = "topic clicks has 2 partitions in the queue and 3 in the app"
    answer = penstock("run", "plain.py", "--dry-run", "--queue", plain.queue, folder=folder)
    assert (answer.returncode, told in answer.stderr) == (2, True), answer
    assert plain.stop() == 0
    answer = penstock("run", "plain.py", "--dry-run", "--data", str(plain.data), folder=folder)
    assert (answer.returncode, told in answer.stderr) == (2, True), answer
    shorter = PLAIN.replace('key="id"', 'key="id", guarantee=Guarantee(history="1 day")').replace(
        "sources", "Guarantee, sources", 1
    )
    (folder / "plain.py").write_text(shorter)
    answer = penstock("run", "plain.py", "--dry-run", "--json", "--data", str(plain.data), folder=folder)
    (difference,) = json.loads(answer.stdout)["differences"]
    assert (difference["topic"], difference["setting"], difference["action"]) == ("clicks", "retention.ms", "set")
    assert difference["there"] == "604800000"

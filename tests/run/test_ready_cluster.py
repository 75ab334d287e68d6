"""/ready on a Spark standalone cluster: red, with its reason, once the last executor is gone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.drills.app_process import AppProcess
from penstock.jvm.jars import provide_jars
from penstock.jvm.java import find_java
from penstock.jvm.spark import SPARK_LOCK, spark_home
from penstock.process.cache import cache_folder
from penstock.process.free_port import free_port
from tests.run.conftest import PLAIN
from tests.run.test_ready import metrics, reasons
from tests.run.test_supervisor import post, wait_for

APP = (
    PLAIN
    + """
@plain.query(reads=clicks, writes="kept", mode="microbatch")
def keep(clicks): return clicks.select("id", "_event")
"""
)


class Cluster:
    """A master and one worker."""

    def __init__(self, folder: Path) -> None:
        self.master = f"spark://127.0.0.1:{free_port()}"
        self._folder = folder
        self._environ = os.environ | {
            "SPARK_HOME": str(spark_home()),
            "JAVA_HOME": str(find_java(os.environ).parents[1]),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_DIRS": str(folder / "spark"),
        }
        port = self.master.rpartition(":")[2]
        self._running = {"master": self._start("master", "Master", "--host", "127.0.0.1", "--port", port)}

    def _start(self, name: str, kind: str, *flags: str) -> subprocess.Popen[bytes]:
        command = [str(spark_home() / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}"]
        with (self._folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen([*command, *flags, "--webui-port", "0"], env=self._environ, stdout=log, stderr=log,
                                    start_new_session=True)  # fmt: skip

    def start_worker(self) -> None:
        work = str(self._folder / "work")
        self._running["worker"] = self._start(
            "worker", "Worker", "--host", "127.0.0.1", "-c", "4", "-m", "1g", "-d", work, self.master
        )

    def kill_worker(self) -> None:
        """With its executors, which end when their worker does."""
        worker = self._running.pop("worker")
        worker.kill()
        worker.wait()

    def close(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    yield made
    made.close()


@pytest.mark.timeout(600)
def test_without_executors_nothing_is_ready(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars = ",".join(map(str, provide_jars(SPARK_LOCK, cache_folder(os.environ))))
    settings = f'[analyze]\nmaster = "{cluster.master}"\n[analyze.spark]\n"spark.jars" = "{jars}"\n'
    (tmp_path / "penstock.toml").write_text(settings + '"spark.executor.memory" = "512m"\n')
    (tmp_path / "plain.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    with AppProcess(str(tmp_path / "plain.py"), tmp_path) as app:

        def has_no_executors() -> bool:
            return [reason for reason in reasons(app) if reason.startswith("Spark has no executors")] != []

        wait_for(has_no_executors, "there is no worker yet")
        assert any(f"start workers for {cluster.master}" in reason for reason in reasons(app))
        assert metrics(app)["penstock_spark_task_slots"] == 0
        cluster.start_worker()
        wait_for(lambda: reasons(app) == [], "a worker gave it an executor")
        assert metrics(app)["penstock_spark_task_slots"] == 4
        assert post(app, "a")
        cluster.kill_worker()
        wait_for(has_no_executors, "the worker is gone")

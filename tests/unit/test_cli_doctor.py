"""`penstock doctor`: what it says of a machine and of a data folder, and that it only looks."""

from __future__ import annotations

import fcntl
import importlib.metadata
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from penstock.cli.main import main
from penstock.errors import StorageError
from penstock.kafka.records.batch import assign_offset
from penstock.kafka.records.record import encode_values
from penstock.queue.compiled.modules import DIGESTS, compiled_folder, digest_of
from penstock.queue.core.catalog_changes import Change, ClusterNamed, TopicCreated, TopicDeleted, encode_change
from penstock.queue.log.durable_point import DurablePoint, encode_durable_point
from penstock.queue.offline.read_only_disk import ReadOnlyDisk

ORDERS = UUID(int=1)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("PENSTOCK_BROKER_")]:
        monkeypatch.delenv(name)


def store(folder: Path, *values: bytes) -> Path:
    """A log of one batch a value, all of it durable; gives its segment file."""
    folder.mkdir(parents=True, exist_ok=True)
    log = bytearray()
    for offset, value in enumerate(values):
        batch = encode_values([value], 1)
        assign_offset(batch, offset)
        log += batch
    (folder / f"{0:020}.log").write_bytes(log)
    (folder / "durable").write_bytes(encode_durable_point(DurablePoint(2, len(values), 0, len(log), 0)))
    return folder / f"{0:020}.log"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with the topic 'orders' of two partitions."""
    folder = tmp_path / "data"
    changes: list[Change] = [ClusterNamed("c"), TopicCreated("orders", ORDERS, 2, {})]
    store(folder / "meta", *map(encode_change, changes))
    for partition in ("0", "1"):
        store(folder / "topics" / str(ORDERS) / partition, b"first", b"second", b"third")
    return folder


def damage(segment: Path, word: bytes) -> None:
    whole = bytearray(segment.read_bytes())
    whole[whole.index(word)] ^= 1
    segment.write_bytes(whole)


def report(data: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any], str]:
    """Exit status, the JSON, and the text for people."""
    status = main(["doctor", "--data", str(data), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert main(["doctor", "--data", str(data)]) == status
    return status, told, capsys.readouterr().out


def test_whole_data_is_fine(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 0, and it says how much was read."""
    status, told, text = report(data, capsys)
    assert (status, told["damaged"], told["findings"], told["logs"]) == (0, 0, [], 3)
    assert text == "2 partitions and the metadata log were read: nothing is damaged.\n"


def test_damage_is_named_by_topic_file_and_offset(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Status 1, with what can be done."""
    damage(data / "topics" / str(ORDERS) / "1" / f"{0:020}.log", b"second")
    status, told, text = report(data, capsys)
    assert status == 1
    (found,) = told["findings"]
    assert (found["topic"], found["partition"], found["kind"], found["offset"]) == ("orders", 1, "damaged", 1)
    assert "damaged: orders, partition 1" in text
    assert f"topics/{ORDERS}/1/{0:020}.log, byte" in text
    assert "read on from offset 2" in text


def test_a_damaged_metadata_log_does_not_hide_the_records(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Folders that no topic owns any more are read too."""
    damage(data / "meta" / f"{0:020}.log", b"orders")
    damage(data / "topics" / str(ORDERS) / "0" / f"{0:020}.log", b"third")
    status, told, text = report(data, capsys)
    assert (status, told["damaged"]) == (1, 2)
    assert "damaged: metadata" in text
    assert "no topic in the metadata log owns this folder" in text
    assert f"damaged: topics/{ORDERS}/0" in text


def test_a_change_that_this_version_does_not_know_is_named(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As after going back to an older Penstock."""
    changes = [encode_change(TopicCreated("orders", ORDERS, 2, {})), b'{"type":"from the future"}']
    store(data / "meta", *changes)
    status, _, text = report(data, capsys)
    assert status == 1
    assert "at least as new" in text


def test_a_missing_partition_folder_is_damage(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The metadata log knows that it was there."""
    folder = data / "topics" / str(ORDERS) / "1"
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    status, _, text = report(data, capsys)
    assert status == 1
    assert "missing: orders, partition 1" in text


def test_leftovers_of_a_deleted_topic_are_not_mentioned(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The next start removes them."""
    changes: list[Change] = [TopicCreated("orders", ORDERS, 2, {}), TopicDeleted(ORDERS)]
    store(data / "meta", *map(encode_change, changes))
    assert report(data, capsys)[0] == 0


def test_a_running_broker_is_mentioned_and_the_data_still_read(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The lock says so."""
    with (data / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        status, told, text = report(data, capsys)
    assert (status, told["in_use"]) == (0, True)
    assert text.startswith("A broker is running")
    assert report(data, capsys)[1]["in_use"] is False


def test_looking_changes_nothing(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a byte nor a time of change, also where there is damage."""
    damage(data / "topics" / str(ORDERS) / "0" / f"{0:020}.log", b"first")

    def tree() -> list[tuple[str, int, int]]:
        found = [(str(path), path.stat()) for path in sorted(data.rglob("*"))]
        return [(path, stat.st_mtime_ns, stat.st_size) for path, stat in found]

    before = tree()
    report(data, capsys)
    assert tree() == before


def test_the_disk_of_the_doctor_refuses_every_change(data: Path) -> None:
    """By construction, not by good intentions."""
    disk = ReadOnlyDisk(str(data))
    file = disk.open("meta/durable")
    attempts: list[Callable[[], object]] = [
        lambda: file.write(0, [b"x"]), lambda: file.truncate(0), file.sync,
        lambda: disk.create("x"), lambda: disk.make_folder("x"), lambda: disk.remove("meta/durable"),
        lambda: disk.remove_folder("meta"), lambda: disk.rename("meta/durable", "x"), lambda: disk.sync_folder("meta"),
    ]  # fmt: skip
    for attempt in attempts:
        with pytest.raises(StorageError):
            attempt()
    file.close()


def test_a_machine_says_whether_its_broker_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    folder = compiled_folder(tmp_path)

    def told() -> tuple[str, str]:
        assert main(["doctor", "--json"]) == 0
        checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
        return checks["compiled"]["status"], checks["compiled"]["what"]

    assert told() == (
        "note",
        "the broker runs interpreted: nothing was compiled yet; 'penstock compile' makes it faster",
    )
    folder.mkdir(parents=True)
    assert "damaged" in told()[1]
    (folder / "library").touch()
    (folder / DIGESTS).write_text(f"{digest_of(folder / 'library')}  library\n")
    assert told() == ("ok", f"the broker's hot modules are in {folder}")
    monkeypatch.setenv("PENSTOCK_BROKER_COMPILED", "false")
    assert told() == ("note", "the broker runs interpreted: compiled = false in its settings")


def test_a_machine_is_checked_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    """For people and for programs."""
    assert main(["doctor", "--json"]) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    names = [check["name"] for check in checks]
    assert names == ["python", "client", "spark", "java", "jars", "compiled", "data", "listen", "handles"]
    assert all(check["status"] in ("ok", "note") and check["what"] for check in checks)
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in names)


@pytest.mark.parametrize(
    ("installed", "status", "what"),
    [
        ({}, "ok", "pandas 2.3.3"),
        ({"pandas": "3.0.1"}, "note", "Python functions in queries need pandas >=2.2,<3 (3.0.1): run pip install"),
        ({"pandas": "2.1.4"}, "note", "need pandas >=2.2,<3 (2.1.4): run pip install 'penstock[spark]'"),
        ({"pyarrow": "", "protobuf": "6.33.4"}, "note", "protobuf >=6.33.5,<7 (6.33.4), pyarrow >=18,<27 (not inst"),
        ({"pyspark": ""}, "note", "pyspark is not installed; only queries need it: run pip install 'penstock[spark]'"),
    ],
)
def test_the_libraries_of_python_queries_are_compared_with_what_fits(
    installed: dict[str, str],
    status: str,
    what: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An empty version: it is not installed."""
    fits = {"numpy": "2.4.6", "pandas": "2.3.3", "protobuf": "6.33.6", "pyarrow": "26.0.1", "pyspark": "4.3.0"}
    versions = fits | installed
    own = importlib.metadata.version

    def version(name: str) -> str:
        found = versions.get(name) if name in versions else own(name)
        if not found:
            raise importlib.metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr("importlib.metadata.version", version)
    assert main(["doctor", "--json"]) == 0
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["spark"]["status"] == status
    assert what in checks["spark"]["what"]

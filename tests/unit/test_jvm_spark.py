"""Spark's JVM: how it is started, and the archive of its classes."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.jvm.class_archive import ClassArchive
from penstock.jvm.jars import read_lock
from penstock.jvm.spark import SPARK_LOCK, SparkJvm, spark_command, spark_home


@pytest.fixture
def java(tmp_path: Path) -> Path:
    """A folder that looks like a Java."""
    (tmp_path / "jdk" / "bin").mkdir(parents=True)
    (tmp_path / "jdk" / "release").write_text("17")
    return tmp_path / "jdk" / "bin" / "java"


def test_what_spark_lacks_is_pinned() -> None:
    """Its connector to Kafka with what that needs, and a local file system that starts no processes."""
    assert {jar.artifact for jar in read_lock(SPARK_LOCK)} == {
        "spark-sql-kafka-0-10_2.13", "spark-token-provider-kafka-0-10_2.13", "kafka-clients", "commons-pool2",
        "hadoop-bare-naked-local-fs",
    }  # fmt: skip


def test_spark_comes_with_the_pyspark_package() -> None:
    assert (spark_home() / "jars").is_dir()


def test_the_command_asks_for_no_module_that_a_small_java_lacks(java: Path, tmp_path: Path) -> None:
    jars = [Path("a.jar"), Path("b.jar")]
    command = spark_command(java, jars, memory="2g", log=tmp_path / "spark.log", tmp=tmp_path)
    assert command[0] == str(java)
    assert "-Xmx2g" in command
    assert command[command.index("-cp") + 1] == "a.jar:b.jar"
    assert not any("incubator" in word for word in command)


def test_a_jvm_that_ends_at_its_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    jvm = SparkJvm([sys.executable, "-c", "import sys; sys.exit('no memory')"], tmp_path / "out", tmp_path)
    with pytest.raises(PenstockError, match="status 1 at its start: no memory"):
        jvm.gateway(compiler_yields=True)
    assert jvm.has_ended
    jvm.end()


def test_port_and_secret_are_read_from_what_the_jvm_writes(tmp_path: Path) -> None:
    tells = (
        "import os, sys; path = os.environ['_PYSPARK_DRIVER_CONN_INFO_PATH']; secret = b'hush'\n"
        "said = (4711).to_bytes(4, 'big') + len(secret).to_bytes(4, 'big') + secret\n"
        "open(path + '.new', 'wb').write(said); os.rename(path + '.new', path); sys.stdin.read()"
    )
    jvm = SparkJvm([sys.executable, "-c", tells], tmp_path / "out", tmp_path)
    assert jvm.gateway(compiler_yields=False) == (4711, "hush")
    (private,) = tmp_path.glob("gateway-*")
    assert private.stat().st_mode & 0o777 == 0o700, "others would read the secret"
    jvm.end()
    assert not private.exists()
    assert jvm.has_ended


def test_without_an_archive_java_writes_the_list_to_make_one_from(java: Path, tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path / "cache", java, [])
    assert archive.flags(tmp_path / "list") == [f"-XX:DumpLoadedClassList={tmp_path / 'list'}"]
    archive.path.parent.mkdir(parents=True)
    archive.path.write_bytes(b"archive")
    assert f"-XX:SharedArchiveFile={archive.path}" in archive.flags(tmp_path / "list")
    archive.forget()
    assert archive.flags(tmp_path / "list") == [f"-XX:DumpLoadedClassList={tmp_path / 'list'}"]


def test_an_archive_is_for_one_java_and_one_class_path(java: Path, tmp_path: Path) -> None:
    """A jar that changed needs another archive: Java would refuse the old one."""
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"one")
    before = ClassArchive(tmp_path, java, [jar]).path
    assert ClassArchive(tmp_path, java, [jar]).path == before
    jar.write_bytes(b"another")
    assert ClassArchive(tmp_path, java, [jar]).path != before


def make(archive: ClassArchive, script: str, class_list: Path) -> None:
    """Let `script` stand in for Java, which is given the same flags, until it ends."""
    class_list.write_bytes(b"java/lang/Object id: 0\njava/lang/Ha")
    making = archive.begin([sys.executable, "-c", script], class_list)
    assert making is not None
    assert archive.begin(["never"], class_list) is None, "only one is made at a time"
    deadline = time.monotonic() + 60
    while not making.poll():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_archive_is_made_from_the_whole_lines_of_the_list(java: Path, tmp_path: Path) -> None:
    copies = (
        "import sys; from pathlib import Path; given = sys._xoptions\n"
        "Path(given['X:SharedArchiveFile']).write_bytes(Path(given['X:SharedClassListFile']).read_bytes())"
    )
    archive = ClassArchive(tmp_path / "cache", java, [])
    make(archive, copies, tmp_path / "classes.list")
    assert archive.path.read_bytes() == b"java/lang/Object id: 0\n"


def test_an_archive_that_failed_leaves_nothing_that_counts(java: Path, tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path / "cache", java, [])
    make(archive, "raise SystemExit(1)", tmp_path / "classes.list")
    assert not archive.path.exists()


def test_making_can_be_ended_and_begun_again(java: Path, tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path / "cache", java, [])
    (tmp_path / "classes.list").write_bytes(b"a\n")
    for _ in range(2):
        making = archive.begin([sys.executable, "-c", "import time; time.sleep(600)"], tmp_path / "classes.list")
        assert making is not None
        making.end()
    assert not archive.path.exists()

"""One function finds Java, and says what to do when there is none."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.jvm.java import find_java, java_version, parse_version, wheel_java

WHEEL = Path("/wheel/java")


def find(environ: Mapping[str, str], versions: Mapping[str, int | None], *, wheel: Path | None = WHEEL) -> Path:
    """find_java on a machine that has just these programs."""
    return find_java(
        environ,
        which=lambda name, path: f"{path}/{name}" if f"{path}/{name}" in versions else None,
        version_of=lambda java: versions.get(str(java)),
        wheel=lambda: wheel,
    )


def test_java_home_comes_before_path() -> None:
    """Whoever sets JAVA_HOME gets that Java."""
    found = find({"JAVA_HOME": "/opt/jdk", "PATH": "/bin"}, {"/opt/jdk/bin/java": 21, "/bin/java": 17})
    assert found == Path("/opt/jdk/bin/java")


@pytest.mark.parametrize("version", [8, 11, 16, None])
def test_a_java_that_is_too_old_or_broken_is_passed_over(version: int | None) -> None:
    """The next place is asked when JAVA_HOME is no use, and the wheel when PATH is none either."""
    environ = {"JAVA_HOME": "/opt/jdk", "PATH": "/bin"}
    assert find(environ, {"/opt/jdk/bin/java": version, "/bin/java": 17}) == Path("/bin/java")
    assert find(environ, {"/opt/jdk/bin/java": version, "/bin/java": version}) == WHEEL


def test_without_any_java_the_wheel_serves() -> None:
    """A machine with only Python and a registry has a Java."""
    assert find({}, {}) == WHEEL


def test_no_java_at_all_is_one_sentence_with_what_to_do() -> None:
    """The operator reads what was found, and both ways out."""
    with pytest.raises(ConfigError) as caught:
        find({"PATH": "/bin"}, {"/bin/java": 11}, wheel=None)
    (sentence,) = caught.value.faults
    assert "/bin/java is Java 11" in sentence
    assert "pip install 'penstock[java]'" in sentence
    assert "Java 17+" in sentence


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_392"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Dx=1\nopenjdk version "21-ea" 2023-09-19', 21),
        ("no such thing", None),
    ],
)
def test_versions_are_read_as_javas_print_them(answer: str, version: int | None) -> None:
    """Old and new ways to count are both understood."""
    assert parse_version(answer) == version


def test_the_wheels_java_runs() -> None:
    """What the wheel carries is new enough, and a program that is not there is None, not a crash."""
    java = wheel_java()
    assert java is not None
    assert (java_version(java) or 0) >= 17
    assert java_version(Path("/nowhere/java")) is None


def test_the_file_beside_a_java_tells_its_version_unless_it_cannot_be_run(tmp_path: Path) -> None:
    """Quicker than to run it; what cannot be run here is no Java, whatever its folder says."""
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    told = tmp_path / "release"
    told.write_text(f'JAVA_VERSION="21.0.8"\nOS_ARCH="{platform.machine()}"\n')
    assert java_version(java) is None
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    java_version.cache_clear()
    assert java_version(java) == 21
    told.write_text('JAVA_VERSION="21.0.8"\nOS_ARCH="another"\n')
    java_version.cache_clear()
    assert java_version(java) is None

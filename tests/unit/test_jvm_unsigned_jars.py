"""Copies of signed jars without their signatures."""

from __future__ import annotations

import zipfile
from pathlib import Path

from penstock.jvm.unsigned_jars import unsigned_copy


def test_a_copy_has_everything_but_the_signature(tmp_path: Path) -> None:
    """Java then takes the classes into its archive, as it does those of a jar that nobody signed."""
    parts = {
        "META-INF/MANIFEST.MF": b"Manifest-Version: 1.0\n",
        "META-INF/services/Compiler": b"Janino",
        "org/Compiler.class": b"\xca\xfe",
    }
    jar = _jar(tmp_path / "janino-3.jar", {**parts, "META-INF/DUMMY.SF": b"digests", "META-INF/DUMMY.DSA": b"key"})

    with zipfile.ZipFile(unsigned_copy(jar, tmp_path / "cache")) as copy:
        assert {name: copy.read(name) for name in copy.namelist()} == parts


def test_a_copy_is_made_once_and_again_when_the_jar_changes(tmp_path: Path) -> None:
    """The archive of the classes knows a jar by its time: a copy made anew at every start would never fit it."""
    jar = _jar(tmp_path / "janino-3.jar", {"a": b"1"})
    first = unsigned_copy(jar, tmp_path / "cache")
    made_ns = first.stat().st_mtime_ns
    again = unsigned_copy(jar, tmp_path / "cache")
    assert (again, again.stat().st_mtime_ns) == (first, made_ns)

    _jar(jar, {"a": b"1", "b": b"2"})
    with zipfile.ZipFile(unsigned_copy(jar, tmp_path / "cache")) as copy:
        assert copy.namelist() == ["a", "b"]


def test_without_a_cache_the_jar_itself_serves(tmp_path: Path) -> None:
    """A slower start is better than none."""
    jar = _jar(tmp_path / "janino-3.jar", {"a": b"1"})
    (tmp_path / "cache").write_text("a file where the folder would be")
    assert unsigned_copy(jar, tmp_path / "cache") == jar


def _jar(path: Path, parts: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as jar:
        for name, content in parts.items():
            jar.writestr(name, content)
    return path

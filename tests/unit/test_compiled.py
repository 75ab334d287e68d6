"""Compiled modules are found only where they were made from the sources at hand."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.compiled import make, modules, use
from penstock.compiled.make import make_compiled, refusals
from penstock.compiled.modules import MODULES, PACKAGE, compiled_folder, source_path
from penstock.compiled.use import is_compiled, use_compiled
from penstock.errors import ConfigError


def test_every_module_that_is_compiled_has_a_source() -> None:
    """A module that was renamed would be left out in silence."""
    assert [name for name in MODULES if not (PACKAGE.parent / source_path(name)).is_file()] == []


@pytest.mark.parametrize("module", [MODULES[0], MODULES[-1], "penstock.config"])
def test_what_was_compiled_from_other_sources_is_not_found(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever edits a source, or what it relies on, runs the source."""
    shutil.copytree(PACKAGE, tmp_path / "penstock", ignore=shutil.ignore_patterns("__pycache__"))
    before = compiled_folder(tmp_path)
    monkeypatch.setattr(modules, "PACKAGE", tmp_path / "penstock")
    assert compiled_folder(tmp_path) == before
    with (tmp_path / source_path(module)).open("a") as source:
        source.write("# changed\n")
    assert compiled_folder(tmp_path) != before


def test_without_any_the_sources_are_used(tmp_path: Path) -> None:
    assert not use_compiled({"PENSTOCK_CACHE": str(tmp_path)})
    assert not is_compiled()


def test_a_process_that_has_imported_a_source_goes_on_with_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of them compiled would not work."""
    monkeypatch.setitem(sys.modules, MODULES[0], use)
    compiled_folder(tmp_path).mkdir(parents=True)
    assert not use_compiled({"PENSTOCK_CACHE": str(tmp_path)})
    assert not is_compiled()


def test_what_is_there_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "_compile", None)
    compiled_folder(tmp_path).mkdir(parents=True)
    assert make_compiled(tmp_path, {}) == compiled_folder(tmp_path)


def test_a_machine_that_cannot_compile_is_told_all_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    lacks = refusals({"CC": "no-such-compiler"})
    assert [text.split(":")[0] for text in lacks] == [
        "there is no C compiler (no-such-compiler)",
        "Python's headers are not there",
    ]
    with pytest.raises(ConfigError, match="no C compiler"):
        make_compiled(tmp_path, {"CC": "no-such-compiler"})
    assert not list(tmp_path.glob("compiled/*"))


def test_who_comes_while_another_compiles_waits_and_finds_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at once would do the work twice, and one would fail to put its own in place."""
    began, may_end = threading.Event(), threading.Event()

    def compile_slowly(scratch: Path, environ: Mapping[str, str]) -> Path:
        assert not began.is_set()
        began.set()
        assert may_end.wait(60)
        (scratch / "made").mkdir()
        return scratch / "made"

    monkeypatch.setattr(make, "_compile", compile_slowly)
    monkeypatch.setattr(make, "refusals", lambda environ: [])
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(make_compiled, tmp_path, {})
        assert began.wait(60)
        second = pool.submit(make_compiled, tmp_path, {})
        may_end.set()
        assert first.result(60) == second.result(60) == compiled_folder(tmp_path)


def test_a_few_versions_are_kept_and_nothing_half_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def compile_at_once(scratch: Path, environ: Mapping[str, str]) -> Path:
        (scratch / "made").mkdir()
        return scratch / "made"

    monkeypatch.setattr(make, "_compile", compile_at_once)
    monkeypatch.setattr(make, "refusals", lambda environ: [])
    (tmp_path / "compiled" / "making-killed" / "work").mkdir(parents=True)
    for age in range(6):
        old = tmp_path / "compiled" / f"old-{age}"
        old.mkdir()
        os.utime(old, (1_000_000 - age, 1_000_000 - age))
    made = make_compiled(tmp_path, {})
    assert {path.name for path in made.parent.iterdir()} == {made.name, "lock", "old-0", "old-1", "old-2"}

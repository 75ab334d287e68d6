"""Compiled modules are found only where they were made from the sources at hand."""

from __future__ import annotations

import ast
import fcntl
import os
import shutil
import sys
import sysconfig
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.queue.compiled import make, modules
from penstock.queue.compiled.make import make_compiled, missing_tools
from penstock.queue.compiled.modules import (
    DIGESTS,
    MODULES,
    PACKAGE,
    SUFFIX,
    compiled_folder,
    digest_of,
    find_compiled,
    relied_on,
    source_path,
    why_interpreted,
)
from penstock.queue.compiled.use import is_compiled, use_compiled
from tests.unit.import_graph import imports


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"PENSTOCK_CACHE": str(tmp_path)}


@pytest.fixture
def nothing_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has only begun."""
    for module in MODULES:
        monkeypatch.delitem(sys.modules, module, raising=False)


def compile_nothing(work: Path, environ: Mapping[str, str]) -> Path:
    made = work.with_name("made")
    made.mkdir()
    library = made / f"library{SUFFIX}"
    library.write_bytes(b"whole.")
    (made / DIGESTS).write_text(f"{digest_of(library)}  {library.name}\n")
    return made


@pytest.fixture
def can_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "_compile", compile_nothing)
    monkeypatch.setattr(make, "missing_tools", lambda environ: [])


def test_every_module_that_is_compiled_has_a_source() -> None:
    """A module that was renamed would be left out in silence."""
    assert [name for name in MODULES if not (PACKAGE.parent / source_path(name)).is_file()] == []


def test_the_digest_covers_every_import_of_a_compiled_module() -> None:
    """A library that was compiled against an older source of an import must never be loaded."""
    graph = imports()
    found: set[str] = set()
    new = set(MODULES)
    while new:
        found |= new
        new = {name for module in new for name in graph[module]} - found
    missing = {PACKAGE.parent / source_path(name) for name in found} - set(relied_on())
    assert {path for path in missing if path.is_file()} == set()
    assert len(found) > len(MODULES)


@pytest.mark.parametrize("module", [*MODULES, "penstock.config.setting", "penstock.queue.log.layout"])
def test_what_was_compiled_from_other_sources_is_not_found(module: str, tmp_path: Path) -> None:
    """Whoever edits a source, or what it relies on, runs the source."""
    copy = tmp_path / "penstock"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert compiled_folder(tmp_path, copy) == compiled_folder(tmp_path)
    with (tmp_path / source_path(module)).open("a") as source:
        source.write("# changed\n")
    assert compiled_folder(tmp_path, copy) != compiled_folder(tmp_path)


@pytest.mark.usefixtures("nothing_imported")
def test_without_any_the_sources_are_used(environ: dict[str, str]) -> None:
    assert not use_compiled(environ)
    assert not is_compiled()


def test_a_process_that_has_imported_a_source_goes_on_with_sources(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, can_compile: None
) -> None:
    """Half of them compiled would not work."""
    monkeypatch.setitem(sys.modules, MODULES[0], modules)
    assert make_compiled(tmp_path, {}) == find_compiled(environ)
    assert not use_compiled(environ)
    assert not is_compiled()


@pytest.mark.usefixtures("nothing_imported")
@pytest.mark.parametrize("harm", ["cut", "gone", "changed"])
def test_a_damaged_folder_is_not_used_and_is_made_again(
    harm: str, tmp_path: Path, environ: dict[str, str], can_compile: None
) -> None:
    """A cleaner of caches, or a power cut: a library that is cut short would kill the broker."""
    library = make_compiled(tmp_path, {}) / f"library{SUFFIX}"
    assert find_compiled(environ) == library.parent
    if harm == "gone":
        library.unlink()
    else:
        library.write_bytes(library.read_bytes()[:3] if harm == "cut" else b"whole?")
    assert find_compiled(environ) is None
    assert not use_compiled(environ)
    assert "damaged" in why_interpreted(environ)
    assert find_compiled(environ) is None
    assert make_compiled(tmp_path, {}) == library.parent == find_compiled(environ)


def test_people_are_told_why_it_is_interpreted(tmp_path: Path, environ: dict[str, str]) -> None:
    assert why_interpreted(environ) == "nothing was compiled yet"
    (tmp_path / "compiled" / "0123456789abcdef").mkdir(parents=True)
    assert why_interpreted(environ) == "what was compiled is of other sources or of another Python"
    (tmp_path / "file").touch()
    assert find_compiled({"PENSTOCK_CACHE": str(tmp_path / "file")}) is None
    with pytest.raises(ConfigError, match="set PENSTOCK_CACHE"):
        make_compiled(tmp_path / "file", os.environ)


def test_a_service_without_a_home_runs_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert find_compiled({}) is None


def test_what_is_there_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_compile: None) -> None:
    make_compiled(tmp_path, {})
    monkeypatch.setattr(make, "_compile", None)
    assert make_compiled(tmp_path, {}) == compiled_folder(tmp_path)


def test_a_machine_that_cannot_compile_is_told_all_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    missing = missing_tools({"CC": "no-such-compiler"})
    assert [text.split(":")[0] for text in missing] == [
        "there is no C compiler (no-such-compiler)",
        "Python's headers are not there",
    ]
    with pytest.raises(ConfigError, match="no C compiler"):
        make_compiled(tmp_path, {"CC": "no-such-compiler"})
    assert not list(tmp_path.glob("compiled/*"))


@pytest.mark.usefixtures("can_compile")
def test_who_comes_while_another_compiles_waits_and_finds_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two at once would do the work twice, and one would fail to put its own in place."""
    began, waits, compiled = threading.Event(), threading.Event(), []

    def compile_when_another_waits(work: Path, environ: Mapping[str, str]) -> Path:
        began.set()
        assert waits.wait(60)
        compiled.append(work)
        return compile_nothing(work, environ)

    lock = fcntl.flock

    def told_lock(file: int, how: int) -> None:
        if began.is_set():
            waits.set()
        lock(file, how)

    monkeypatch.setattr(make, "_compile", compile_when_another_waits)
    monkeypatch.setattr(fcntl, "flock", told_lock)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(make_compiled, tmp_path, {})
        assert began.wait(60)
        second = pool.submit(make_compiled, tmp_path, {})
        assert first.result(60) == second.result(60) == compiled_folder(tmp_path)
    assert len(compiled) == 1


@pytest.mark.usefixtures("can_compile")
def test_those_used_last_are_kept_and_nothing_half_made(tmp_path: Path) -> None:
    (tmp_path / "compiled" / "making-killed" / "work").mkdir(parents=True)
    for age in range(10):
        old = tmp_path / "compiled" / f"old-{age}"
        old.mkdir()
        os.utime(old, (1_000_000 - age, 1_000_000 - age))
    made = make_compiled(tmp_path, {})
    assert {path.name for path in made.parent.iterdir()} == {made.name, "lock", *(f"old-{age}" for age in range(7))}


@pytest.mark.usefixtures("can_compile")
def test_what_is_edited_while_it_is_compiled_is_not_found_under_the_new_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is that of the sources that were compiled."""
    package = tmp_path / "penstock"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(make, "PACKAGE", package)

    def compile_while_somebody_edits(work: Path, environ: Mapping[str, str]) -> Path:
        (package / "errors.py").write_text("")
        return compile_nothing(work, environ)

    monkeypatch.setattr(make, "_compile", compile_while_somebody_edits)
    before = compiled_folder(tmp_path, package)
    assert make_compiled(tmp_path, {}) == before != compiled_folder(tmp_path, package)
    assert not compiled_folder(tmp_path, package).exists()


def test_no_compiled_function_gives_one_name_to_errors_of_two_types() -> None:
    """mypyc gives such a name the type of the first: an error of the second type raises TypeError in its place."""
    found = []
    for module in MODULES:
        tree = ast.parse((PACKAGE.parent / source_path(module)).read_text("utf-8"))
        for function in ast.walk(tree):
            if not isinstance(function, ast.FunctionDef):
                continue
            types: dict[str, set[str]] = {}
            for handler in ast.walk(function):
                if isinstance(handler, ast.ExceptHandler) and handler.name and handler.type:
                    types.setdefault(handler.name, set()).add(ast.unparse(handler.type))
            found += [f"{module}.{function.name}: {name}" for name, kinds in types.items() if len(kinds) > 1]
    assert found == []

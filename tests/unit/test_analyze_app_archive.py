"""What is sent to Spark's workers of the folder of an app: what the app imports from it, and no more."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from penstock.analyze.app_archive import FILES_MAX, files_beside
from penstock.errors import ConfigError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, **files: str) -> None:
    """Write files: two underscores of a name stand for a slash."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def app(folder: Path, text: str) -> ModuleType:
    (folder / "the_app.py").write_text(text)
    module = ModuleType("penstock_app")
    module.__file__ = str(folder / "the_app.py")
    return module


def sent(folder: Path, text: str) -> set[str]:
    return set(files_beside([app(folder, text)], [str(folder)]))


def test_what_is_imported_is_sent_and_what_that_imports(folder: Path) -> None:
    write(folder, first="import second_one.inner", second_one__inner="import third_one", third_one="", other="")
    (folder / "second_one" / "data.txt").write_text("no package: its data stay here")
    assert sent(folder, "def f():\n    from first import x") == {"first.py", "second_one/inner.py", "third_one.py"}


def test_a_package_is_sent_with_its_files_but_not_what_is_hidden(folder: Path) -> None:
    write(folder, packed__inner="", packed__deep__more="")
    for name in ("__init__.py", "model.bin", ".secret", ".git/config", "__pycache__/inner.pyc"):
        path = folder / "packed" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("")
    wanted = {"packed/__init__.py", "packed/inner.py", "packed/deep/more.py", "packed/model.bin"}
    assert sent(folder, "import packed.inner") == wanted


def test_a_module_that_no_text_names_is_sent_once_it_is_imported(folder: Path) -> None:
    write(folder, by_name="")
    assert sent(folder, "import json, not_there") == set()
    importlib.import_module("by_name")
    assert sent(folder, "") == {"by_name.py"}


def test_an_installed_module_of_the_same_name_is_not_sent(folder: Path) -> None:
    """Python imported json before the folder was on its path."""
    write(folder, json="")
    assert sent(folder, "import json") == set()


def test_too_much_is_refused_with_the_way_out(folder: Path) -> None:
    write(folder, large__small="")
    (folder / "large" / "__init__.py").touch()
    with (folder / "large" / "model.bin").open("wb") as file:
        file.truncate(33 << 20)
    with pytest.raises(ConfigError) as refused:
        sent(folder, "import large")
    assert str(refused.value) == (
        "the code beside the app that Spark's workers need is too large: with large it has 3 files and 33 MiB, and "
        f"they are sent at most {FILES_MAX} files and 32 MiB; the largest is large/model.bin: keep data outside of "
        "packages, or install the package"
    )

"""Each package says its one job, and lists its files in reading order."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from penstock.kafka.wire.apis import ApiKey
from tests.unit.import_graph import PACKAGES

ROOT = PACKAGES[0].parents[1]
PUBLIC = PACKAGES[0] / "__init__.py"  # the public names, not a list of files
WORDS_MAX = 12
# These packages hold one file an API: the docstring states that rule, and lists only the other files.
ONE_FILE_AN_API = (PACKAGES[0] / "queue/handlers", PACKAGES[0] / "kafka/wire/messages")
APIS = frozenset(key.name.lower() for key in ApiKey)
ENTRY = re.compile(r"(\S+) {2,}(\S.*)")


def inits() -> list[Path]:
    return sorted(path for package in PACKAGES for path in package.rglob("__init__.py") if path != PUBLIC)


def contents(folder: Path) -> set[str]:
    """The names to list: a module by its stem, a folder with a slash, any other file by its whole name."""
    found = [path for path in folder.iterdir() if not path.name.startswith((".", "__pycache__", "__init__"))]
    # A package that was moved away leaves its cache behind in an old checkout.
    found = [path for path in found if not _is_only_cache(path)]
    return {f"{path.name}/" if path.is_dir() else path.name.removesuffix(".py") for path in found}


def _is_only_cache(folder: Path) -> bool:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return bool(files) and all("__pycache__" in path.parts for path in files)


def faults(docstring: str, names: Collection[str], unlisted: Collection[str] = ()) -> Iterator[str]:
    """What is wrong with the docstring of a package that holds `names`, of which `unlisted` follow a rule."""
    first, _, rest = docstring.partition("\n")
    if re.search(r"[.!?] ", first) or not first.endswith("."):
        yield f"the first line is not one sentence: {first}"
    if not rest.startswith("\n"):
        yield "no blank line follows the first sentence"
    lines = [line for line in rest.splitlines() if line]
    if unlisted and lines and not ENTRY.fullmatch(lines[0]):
        del lines[0]  # the rule
    listed = []
    for line in lines:
        entry = ENTRY.fullmatch(line)
        if entry is None:
            yield f"neither a name nor what it holds: {line}"
            continue
        listed.append(entry[1])
        if len(entry[2].split()) > WORDS_MAX:
            yield f"more than {WORDS_MAX} words: {line}"
    yield from (f"listed twice: {name}" for name in sorted(set(listed)) if listed.count(name) > 1)
    yield from (f"does not exist: {name}" for name in sorted(set(listed) - set(names)))
    yield from (f"not listed: {name}" for name in sorted(set(names) - set(listed) - set(unlisted)))


@pytest.mark.parametrize("init", inits(), ids=lambda path: path.parent.relative_to(ROOT).as_posix())
def test_a_package_lists_each_of_its_files_once(init: Path) -> None:
    docstring = ast.get_docstring(ast.parse(init.read_text("utf-8"))) or ""
    unlisted = APIS if init.parent in ONE_FILE_AN_API else ()
    assert list(faults(docstring, contents(init.parent), unlisted)) == []


def test_all_packages_are_found() -> None:
    assert len(inits()) > 40
    assert all(package / "__init__.py" in inits() for package in ONE_FILE_AN_API)


SOUND = "One job.\n\na    the first\n\nb/   the second, a package"


def test_a_file_that_is_added_must_be_listed(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    (tmp_path / "a.py").touch()
    (tmp_path / "b").mkdir()
    assert list(faults(SOUND, contents(tmp_path))) == []
    (tmp_path / "c.py").touch()
    assert list(faults(SOUND, contents(tmp_path))) == ["not listed: c"]


def test_a_file_that_is_gone_must_not_be_listed() -> None:
    assert list(faults(SOUND, ["a"])) == ["does not exist: b/"]


@pytest.mark.parametrize(
    ("docstring", "fault"),
    [
        ("One job\n\na  first", "the first line is not one sentence: One job"),
        ("One job. Another.\n\na  first", "the first line is not one sentence: One job. Another."),
        ("One job.\na  first", "no blank line follows the first sentence"),
        ("One job.\n\na  first\na  again", "listed twice: a"),
        ("One job.\n\nSome prose.\na  first", "neither a name nor what it holds: Some prose."),
        (f"One job.\n\na  {'word ' * 13}", f"more than 12 words: a  {'word ' * 13}"),
    ],
)
def test_a_fault_of_a_docstring_is_found(docstring: str, fault: str) -> None:
    assert list(faults(docstring, ["a"])) == [fault]


def test_a_rule_covers_the_files_that_follow_it_and_no_others() -> None:
    docstring = "One job.\n\nOne file an API.\n\nfast  the exception"
    assert list(faults(docstring, ["fast", "fetch"], ["fetch", "produce"])) == []
    assert list(faults(docstring, ["fast", "fetch", "odd"], ["fetch", "produce"])) == ["not listed: odd"]

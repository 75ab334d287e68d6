"""Whatever README, CHANGELOG and docs name exists: settings, commands, flags, files, tests, packages, events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import click

from penstock.cli.main import command
from penstock.config.layers import TABLES
from penstock.queue.core import events
from tools.kafka_python_suite import CANNOT_PASS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL = "\n".join(page.read_text() for page in PAGES)
INLINE = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", ALL, flags=re.DOTALL))
SHELL = [line for block in re.findall(r"```\n(.*?)```", ALL, re.DOTALL) for line in block.splitlines()]
# Of a delivery, and of the sender of `?wait=`.
OTHER_SETTINGS = {"backlog_max", "timeout_ms"}
THIRD_PARTY_FLAGS = {"--data-binary"}


def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md")]


def test_the_settings_on_the_pages_exist() -> None:
    for table, name in re.findall(r"`(broker|edge|analyze)\.([a-z_]+)`", ALL):
        assert name in {field.name for field in fields(TABLES[table])}, f"{table}.{name}"
    known = OTHER_SETTINGS | {field.name for table in TABLES.values() for field in fields(table)}
    for text in INLINE:
        if name := re.match(r"[a-z]+(?:_[a-z]+)*_(?:max|min|reserve|step|flush|kernel|max_ms|delay_ms)(?= =|$)", text):
            assert name[0] in known, text


@cache
def options(*path: str) -> frozenset[str]:
    """The flags of a command; KeyError if there is no such command."""
    found: click.Command = command
    for name in path:
        inner = found.get_command(click.Context(found), name) if isinstance(found, click.Group) else None
        if inner is None:
            raise KeyError(name)
        found = inner
    return frozenset(flag for option in found.params for flag in option.opts)


def commands() -> Iterator[list[str]]:
    """The words of each command of ours on the pages, up to a pipe or a comment."""
    for text in [*INLINE, *SHELL]:
        for said in re.findall(r"(?:^|\s|/)penstock ([a-z][^|#;]*)", text):
            yield said.split()


def test_the_commands_on_the_pages_exist_with_their_flags() -> None:
    seen = list(commands())
    assert len(seen) > 50
    for words in seen:
        is_group = len(words) > 1 and words[0] in ("topics", "groups", "transactions", "config")
        known = options(*words[: 2 if is_group else 1])
        assert {word for word in words if word.startswith("--")} <= known, words


def test_each_flag_on_the_pages_is_in_our_sources() -> None:
    flag = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
    ours = {
        one for path in files("src", "proof", "bench", "tools", "examples") for one in flag.findall(path.read_text())
    }
    assert {one for text in [*INLINE, *SHELL] for one in flag.findall(text)} - ours <= THIRD_PARTY_FLAGS


def test_the_files_and_tests_on_the_pages_exist() -> None:
    there = [
        f"/{path.relative_to(ROOT).as_posix()}" for path in files("src", "proof", "tests", "tools", "bench", "docs")
    ]
    tests = set(CANNOT_PASS) | {
        name for path in files("tests") for name in re.findall(r"def (test_\w+)", path.read_text())
    }
    checked = 0
    for text in INLINE:
        if file := re.fullmatch(r"((?:[\w.-]+/)*\w+\.(?:py|md))(?:::\w+)?", text):
            assert any(path.endswith(f"/{file[1]}") for path in there), text
        elif test := re.fullmatch(r"(?:\w+/)?(test_\w+)", text):
            assert test[1] in tests or any(path.endswith(f"/{text}.py") for path in there), text
        checked += bool(file) or text.startswith("test_")
    assert checked > 100


def test_the_architecture_names_all_events_effects_and_packages() -> None:
    page = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    glossary = (ROOT / "docs" / "GLOSSARY.md").read_text()
    for kind in ("Event", "Effect"):
        real = [one.__name__ for one in get_args(getattr(events, kind))]
        (said,) = re.findall(rf"{kind}s: ([^.]*)\.", page)
        assert re.findall(r"`(\w+)`", said) == real
        (said,) = re.findall(rf"^\| {kind.lower()} \|[^:]*: (.*) \|$", glossary, re.MULTILINE)
        assert sorted(said.split(", ")) == sorted(name.lower() for name in real)
    rows = re.findall(r"^\| (`.*?) \|", page.split("## Packages")[1].split("\n## ")[0], re.MULTILINE)
    layers = (ROOT / ".importlinter").read_text().split("layers =\n")[1].split("\n\n")[0]
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(re.findall(r"\w+", layers))


def test_aiokafka_has_no_call_that_alters_single_settings() -> None:
    """As docs/differences.md says."""
    spec = find_spec("aiokafka.protocol.admin")
    assert spec is not None
    assert spec.origin is not None
    text = Path(spec.origin).read_text()
    assert "class AlterConfigsRequest" in text
    assert "class IncrementalAlterConfigs" not in text

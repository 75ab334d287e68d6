"""docs/ingest.md says what the door does."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from penstock.config.edge import EdgeConfig
from penstock.events.formats import form_of
from tests.edge.edge_stage import DEADLINE_S, EdgeStage

PAGE = (Path(__file__).parents[2] / "docs" / "ingest.md").read_text()


def test_every_command_of_the_page_answers_as_shown(shop: EdgeStage, need_tool: Callable[[str], str]) -> None:
    need_tool("curl")
    steps = re.findall(r"^\$ (.*)\n(.*)\n", PAGE.split("```\n")[1], re.MULTILINE)
    assert len(steps) == 4
    for command, shown in steps:
        words = ["sh", "-c", command.replace("http://127.0.0.1:8080", shop.url)]
        said = subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, check=True).stdout
        assert said == shown


def test_every_form_of_the_page_is_taken(shop: EdgeStage) -> None:
    rows = [line.split("|")[1] for line in PAGE.split("## Forms")[1].split("\n\n")[0].splitlines()[3:]]
    assert len(rows) == 6
    for row in rows:
        (media,) = re.findall(r"`(application/[^`]+)`", row)
        assert form_of(media, "`ce-*`" in row) is not None


def test_the_limits_of_the_page_are_the_defaults() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE.split("## Limits")[1], re.MULTILINE)
    assert len(rows) == 9
    for name, value in rows:
        assert getattr(EdgeConfig(), name) == int(value), name

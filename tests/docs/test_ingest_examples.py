"""What docs/ingest.md shows is what a real edge answers."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.edge.edge_stage import DEADLINE_S, EdgeStage

TRANSCRIPT = (Path(__file__).parents[2] / "docs/ingest.md").read_text().split("```\n")[1]
STEPS: list[tuple[str, str]] = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", TRANSCRIPT, re.MULTILINE)


def test_each_curl_example_is_answered_as_the_page_shows(tmp_path: Path, need_tool: Callable[[str], str]) -> None:
    need_tool("curl")
    assert len(STEPS) >= 4
    stage = EdgeStage(tmp_path)
    try:
        for command, shown in STEPS:
            here = command.replace("http://127.0.0.1:8080", stage.url)
            assert here != command
            done = subprocess.run(["sh", "-c", here], capture_output=True, text=True, timeout=DEADLINE_S, check=True)
            assert done.stdout + "\n" == shown, command
    finally:
        stage.close()

"""The README claims only what a named test proves."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_test_named_in_the_readme_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", README)
    assert len(named) > 10
    for path, name in named:
        text = (ROOT / path).read_text()
        assert f"def {name or 'test_'}" in text, f"{path}::{name} is claimed in the README and does not exist"


def test_every_promise_names_a_test() -> None:
    table = README.split("which test proves it")[1].split("\n\n")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert rows
    assert all("`tests/" in row for row in rows)


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_make_targets_named_in_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`?make (\w+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"

"""The README and docs/promises.md claim only what a named test proves."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PROMISES = (ROOT / "docs" / "promises.md").read_text()
TESTING = (ROOT / "docs" / "testing.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", README + PROMISES)
    named += re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TESTING)
    assert len(named) > 50
    for path, name in named:
        text = (ROOT / path).read_text()
        found = re.search(rf"def {name}\(" if name else "def test_", text)
        assert found, f"{path}::{name} is claimed and does not exist"


def test_every_promise_names_a_test() -> None:
    rows = [line for line in PROMISES.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) > 30
    assert all("`tests/" in row for row in rows)
    assert f"[All {len(rows)} promises]" in README


def test_the_readme_repeats_promises_word_for_word() -> None:
    table = README.split("which test proves it")[1].split("\n\n")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) > 5
    assert [row for row in rows if row not in PROMISES] == []


def test_the_readme_is_read_in_one_sitting() -> None:
    assert len(README.splitlines()) <= 150


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"


def test_make_targets_named_in_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`?make (\w+)", README):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), f"make {target}"

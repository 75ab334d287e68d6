"""The page about guarantees says what the code decides."""

from __future__ import annotations

from tools.guarantee_table import PAGE, page


def test_the_tables_are_those_of_the_code() -> None:
    """Run python tools/guarantee_table.py after a change."""
    text = PAGE.read_text("utf-8")
    assert page(text) == text

"""The page about clients names the versions that are tested today."""

from __future__ import annotations

from tools.client_table import PAGE, page


def test_the_versions_of_clients_are_those_of_this_run() -> None:
    """Run python tools/client_table.py after an update."""
    text = PAGE.read_text("utf-8")
    assert page(text) == text

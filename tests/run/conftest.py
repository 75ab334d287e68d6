"""Whole apps as processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.drills.app_process import AppProcess

PLAIN = """
from penstock import App, sources

plain = App("plain")
clicks = plain.topic("clicks", schema="id STRING NOT NULL, n INT", key="id", partitions=2)
plain.ingest(sources.Http(), into=clicks)
plain.deliver(clicks)
"""


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[AppProcess]:
    """An app with a queue and doors, and without queries."""
    app = tmp_path / "plain.py"
    app.write_text(PLAIN)
    with AppProcess(str(app), tmp_path) as running:
        yield running

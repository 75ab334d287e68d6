"""One edge with doors in for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.edge.edge_stage import EdgeStage


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EdgeStage]:
    """An edge with the default settings; use ids of your own."""
    built = EdgeStage(tmp_path_factory.mktemp("shop"))
    yield built
    assert "Traceback" not in built.said, built.said
    built.close()

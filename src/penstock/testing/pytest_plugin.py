"""The shared Spark session as a fixture: put pytest_plugins = ["penstock.testing.pytest_plugin"] into conftest.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from penstock.testing.shared_spark import end_shared_spark, shared_spark

if TYPE_CHECKING:
    from penstock.analyze.standalone_session import SparkSession


@pytest.fixture(scope="session")
def penstock_spark() -> Iterator[SparkSession]:
    """The Spark session of all query tests. It ends with the pytest session."""
    yield shared_spark()
    end_shared_spark()

"""Where a column was made: PySpark tells Spark for every one, in ten calls; worth it for the user's, not for ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.errors import utils


@contextmanager
def untold() -> Iterator[None]:
    """Columns made here are made without it. That is 1,100 calls of 2,400 to the first result."""
    told: Any = utils
    before = told._enable_debugging_cache
    told._enable_debugging_cache = False
    try:
        yield
    finally:
        told._enable_debugging_cache = before

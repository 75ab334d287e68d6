"""How much room the disk of a data folder has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from penstock.metrics import family


def disk_metric_lines(data: Path) -> Iterator[str]:
    """The Prometheus text, a line each; nothing where the disk does not answer."""
    try:
        disk = os.statvfs(data)
    except OSError:
        return
    free, size = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    yield from family("penstock_data_free_bytes", "gauge", "Free bytes on the disk of --data.", [({}, free)])
    yield from family("penstock_data_size_bytes", "gauge", "Bytes of the disk of --data.", [({}, size)])

"""Write a whole small file through the disk port."""

from __future__ import annotations

from penstock.ports import Buffer, Disk


def save_file(disk: Disk, path: str, data: Buffer) -> None:
    """Create `path` with this content, not synced; its handle is let go whatever happens."""
    file = disk.create(path)
    try:
        file.write(0, (data,))
    finally:
        file.close()

"""The whole result of a query after each batch, as changes to the batch before: rows that differ, and those that left.

A file beside the checkpoint keeps the digests of the rows of the batch before. It is replaced after the queue has the
changes: a crash between the two writes the same changes again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import msgspec

from penstock.errors import PenstockError

ROWS_MAX = 100_000
_DIGEST_LENGTH = 16

Row = tuple[bytes | None, bytes | None, tuple[bytes | None, ...]]  # key, value, values of the headers


class TableTooLargeError(PenstockError):
    """A result has more rows than can be compared after each batch."""


class ResultTable:
    """What readers of the output topic have, by key."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._digests: dict[bytes, bytes] | None = None
        self._next: dict[bytes, bytes] = {}

    def changes(self, rows: Iterable[Row], is_ranked: bool) -> list[Row]:
        """The rows that differ from the batch before, then a tombstone for each key that is not there any more."""
        before = self._before()
        changed: list[Row] = []
        constant: tuple[bytes | None, ...] = ()
        self._next = {}
        for key, value, headers in _ranked(rows) if is_ranked else rows:
            key, constant = key or b"", headers
            digest = sha256(value or b"").digest()[:_DIGEST_LENGTH]
            if key in self._next:
                raise PenstockError(
                    f"two rows of the result have the key {key.decode(errors='replace')!r}: give its topic a key= that "
                    "tells all rows apart"
                )
            self._next[key] = digest
            if len(self._next) > ROWS_MAX:
                raise TableTooLargeError(
                    f"the result has more than {ROWS_MAX:,} rows, and emit='all' compares all of them after each "
                    "batch: say emit='changes', add LIMIT, or group by less"
                )
            if before.get(key) != digest:
                changed.append((key, value, headers))
        return changed + [(key, None, constant) for key in before if key not in self._next]

    def save(self) -> None:
        """Keep the rows of the last `changes` as those that readers have."""
        if self._next == self._digests:
            return
        new = self._file.with_name(f"{self._file.name}.new")
        with new.open("wb") as file:
            file.write(msgspec.msgpack.encode(self._next))
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._file)
        folder = os.open(self._file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._digests = self._next

    def _before(self) -> dict[bytes, bytes]:
        if self._digests is None:
            try:
                self._digests = msgspec.msgpack.decode(self._file.read_bytes(), type=dict[bytes, bytes])
            except FileNotFoundError:
                self._digests = {}
            except msgspec.DecodeError as error:
                raise PenstockError(
                    f"{self._file} is damaged ({error}): remove it; rows that left the result since stay in the topic"
                ) from error
        return self._digests


def _ranked(rows: Iterable[Row]) -> Iterable[Row]:
    """The rows with their rank behind the key: 1, 2, … among the rows with the same key, in their order."""
    ranks: dict[bytes, int] = {}
    for key, value, headers in rows:
        group = key or b""
        ranks[group] = ranks.get(group, 0) + 1
        yield b"%b%d" % (group + b"|" if group else b"", ranks[group]), value, headers

"""The whole result of a query after each batch, as changes to the batch before: rows that differ, and those that left.

A file beside the checkpoint keeps the digests of the rows of the batch before. It names the keys of changes before they
are written, and is replaced after the queue has them. So a crash at any moment writes these rows again.
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
_UNKNOWN = b""

Row = tuple[bytes | None, bytes | None, tuple[bytes | None, ...]]  # key, value, values of the headers


class TableTooLargeError(PenstockError):
    """A result has more rows than can be compared after each batch."""


class _Stored(msgspec.Struct):
    """The content of the file: what readers of one topic have, by key; the digest is empty where that is not known."""

    topic: str
    rows: dict[bytes, bytes]


class ResultTable:
    """What readers of the output topic have, by key."""

    def __init__(self, file: Path, topic: str = "", tombstone: tuple[bytes | None, ...] = ()) -> None:
        """`topic` tells a topic from every other, also from one of its name before; `tombstone` is its headers."""
        self._file = file
        self._topic = topic
        self._tombstone = tombstone
        self._rows: dict[bytes, bytes] | None = None
        self._next: dict[bytes, bytes] = {}

    def changes(self, rows: Iterable[Row], is_ranked: bool) -> list[Row]:
        """The rows that differ from the batch before, then a tombstone for each key that is not there any more.

        Before they are written, `begin` is to be called, and `save` behind that.
        """
        before = self._before()
        changed: list[Row] = []
        self._next = {}
        for key, value, headers in _ranked(rows) if is_ranked else rows:
            key = key or b""
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
        return changed + [(key, None, self._tombstone) for key in before if key not in self._next]

    def begin(self) -> None:
        """Note durably which keys are about to be written: after a crash readers may have either row of them."""
        before = self._before()
        differing = [key for key, digest in self._next.items() if before.get(key) != digest]
        differing += [key for key in before if key not in self._next]
        if differing:
            self._store(before | dict.fromkeys(differing, _UNKNOWN))

    def save(self) -> None:
        """Keep the rows of the last `changes` as those that readers have."""
        if self._next != self._rows:
            self._store(self._next)

    def _store(self, rows: dict[bytes, bytes]) -> None:
        new = self._file.with_name(f"{self._file.name}.new")
        with new.open("wb") as file:
            file.write(msgspec.msgpack.encode(_Stored(self._topic, rows)))
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._file)
        folder = os.open(self._file.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._rows = rows

    def _before(self) -> dict[bytes, bytes]:
        if self._rows is None:
            try:
                stored = msgspec.msgpack.decode(self._file.read_bytes(), type=_Stored)
                self._rows = stored.rows if stored.topic == self._topic else {}
            except FileNotFoundError:
                self._rows = {}
            except msgspec.DecodeError as error:
                raise PenstockError(
                    f"{self._file} is damaged ({error}): remove it; rows that left the result since stay in the topic"
                ) from error
        return self._rows


def _ranked(rows: Iterable[Row]) -> Iterable[Row]:
    """The rows with their rank behind the key: 1, 2, … among the rows with the same key, in their order."""
    ranks: dict[bytes, int] = {}
    for key, value, headers in rows:
        group = key or b""
        ranks[group] = ranks.get(group, 0) + 1
        yield b"%b%d" % (group + b"|" if group else b"", ranks[group]), value, headers

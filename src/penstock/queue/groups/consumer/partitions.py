"""Sets of partitions, as they are kept and as they are reckoned with."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

Part = tuple[UUID, int]
Parts = dict[Part, None]  # in order, unlike a set
Packed = tuple[tuple[UUID, tuple[int, ...]], ...]


def unpacked(packed: Packed) -> Parts:
    return {(topic_id, index): None for topic_id, indexes in packed for index in indexes}


def packed(parts: Iterable[Part]) -> Packed:
    """By topic, in order: equal sets are equal values."""
    found: dict[UUID, list[int]] = {}
    for topic_id, index in sorted(parts, key=lambda part: (part[0].bytes, part[1])):
        found.setdefault(topic_id, []).append(index)
    return tuple((topic_id, tuple(indexes)) for topic_id, indexes in found.items())

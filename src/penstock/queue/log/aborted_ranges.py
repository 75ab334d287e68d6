"""Ranges of aborted transactions in one segment: what readers of committed records must leave out."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple


class Aborted(NamedTuple):
    """An aborted transaction: its producer, its first record, its marker, up to where none was open after that."""

    producer_id: int
    first_offset: int
    last_offset: int
    stable_offset: int


def add_between(ranges: list[Aborted], offset: int, end: int, found: list[Aborted]) -> bool:
    """Add those that reach into [offset, end) to `found`; True if no later range can. `ranges` ascend by marker."""
    for number in range(bisect_left(ranges, offset, key=lambda one: one.last_offset), len(ranges)):
        one = ranges[number]
        if one.first_offset < end:
            found.append(one)
        if one.stable_offset >= end:
            return True
    return False

"""Whether the records of a batch lie where their lengths and their count say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    # Compiled, numbers of this type stay in registers: a record takes 10 ns, 29 with int. Not there at run time.
    from mypy_extensions import i64

_FAULTS: Final = 16  # a fault is returned as one negative number: -(record * _FAULTS + kind)
_ENDS: Final = 1
_LENGTH: Final = 2
_LONG: Final = 3
_DELTA: Final = 4
_FIELD: Final = 5
_HEADERS: Final = 6
_FIT: Final = 7
_SENTENCES: Final = {
    _ENDS: "the batch ends before record {0} does",
    _LENGTH: "record {0} has a length below 0, or one that does not end",
    _LONG: "record {0} is longer than its batch",
    _DELTA: "record {0} does not have the offset delta {0}",
    _FIELD: "record {0} has a key, a value or a time of an impossible length",
    _HEADERS: "record {0} has an impossible count of headers, or a header without a name",
    _FIT: "the fields of record {0} do not fill it exactly",
}


def framing_fault(data: bytes, count: int) -> str | None:
    """What is wrong with the framing of `count` records that should fill `data`, as a sentence, or None."""
    return end_fault(walk(data, 0, 0, count), len(data), count)


def end_fault(at: int, size: int, count: int) -> str | None:
    """What the place that `walk` returned for all `count` records in `size` bytes says."""
    if at < 0:
        number, kind = divmod(-at, _FAULTS)
        return _SENTENCES[kind].format(number)
    return f"{size - at} bytes follow record {count - 1}, which is the last" if at < size else None


def reached(at: int) -> int | None:
    """The first record that a walk found not to be whole; None where more bytes would not change what it found."""
    number, kind = divmod(-at, _FAULTS)
    return number if at < 0 and kind in (_ENDS, _LONG) else None


def walk(data: bytes, at: i64, number: i64, until: i64) -> i64:
    """Walk the records from `number` at `at` up to `until`: where the next one begins, negative for a fault.

    Every record of every request passes here, so nothing is called, and a number of one byte, as nearly all are,
    takes one comparison. Reading past the end raises IndexError, which is cheaper than to compare before each byte.
    """
    end: i64 = len(data)
    raw: i64
    byte: i64
    shift: i64
    stop: i64
    headers: i64
    try:
        while number < until:
            # Length: a zigzag number, so that an odd one is negative.
            raw = data[at]
            at += 1
            if raw >= 0x80:
                raw &= 0x7F
                shift = 7
                while True:
                    byte = data[at]
                    at += 1
                    raw |= (byte & 0x7F) << shift
                    if byte < 0x80:
                        break
                    shift += 7
                    if shift > 28:
                        return -(number * _FAULTS + _LENGTH)
            if raw & 1:
                return -(number * _FAULTS + _LENGTH)
            stop = at + (raw >> 1)
            if stop > end:
                return -(number * _FAULTS + _LONG)
            # Attributes, which nothing uses, and the time, which may take ten bytes.
            at += 1
            shift = 0
            while data[at] >= 0x80:
                at += 1
                shift += 1
                if shift > 9:
                    return -(number * _FAULTS + _FIELD)
            at += 1
            # Offset delta.
            raw = data[at]
            at += 1
            if raw >= 0x80:
                raw &= 0x7F
                shift = 7
                while True:
                    byte = data[at]
                    at += 1
                    raw |= (byte & 0x7F) << shift
                    if byte < 0x80:
                        break
                    shift += 7
                    if shift > 28:
                        return -(number * _FAULTS + _DELTA)
            if raw != number << 1:
                return -(number * _FAULTS + _DELTA)
            # Key; -1, which is 1 in zigzag, says that there is none.
            raw = data[at]
            at += 1
            if raw >= 0x80:
                raw &= 0x7F
                shift = 7
                while True:
                    byte = data[at]
                    at += 1
                    raw |= (byte & 0x7F) << shift
                    if byte < 0x80:
                        break
                    shift += 7
                    if shift > 28:
                        return -(number * _FAULTS + _FIELD)
            if not raw & 1:
                at += raw >> 1
            elif raw != 1:
                return -(number * _FAULTS + _FIELD)
            # Value.
            raw = data[at]
            at += 1
            if raw >= 0x80:
                raw &= 0x7F
                shift = 7
                while True:
                    byte = data[at]
                    at += 1
                    raw |= (byte & 0x7F) << shift
                    if byte < 0x80:
                        break
                    shift += 7
                    if shift > 28:
                        return -(number * _FAULTS + _FIELD)
            if not raw & 1:
                at += raw >> 1
            elif raw != 1:
                return -(number * _FAULTS + _FIELD)
            # Headers.
            headers = data[at]
            at += 1
            if headers:
                at = _walk_headers(data, at - 1, stop)
                if at < 0:
                    return -(number * _FAULTS + _HEADERS)
            if at != stop:
                return -(number * _FAULTS + _FIT)
            number += 1
    except IndexError:
        return -(number * _FAULTS + _ENDS)
    return at


def _walk_headers(data: bytes, at: i64, stop: i64) -> i64:
    """Where the headers that begin with their count at `at` end; -1 for a fault."""
    count: i64 = _size(data, at)
    at += _width(data, at)
    if count < 0:
        return -1
    while count > 0 and at < stop:
        size: i64 = _size(data, at)
        at += _width(data, at)
        if size < 0:
            return -1
        at += size
        size = _size(data, at)
        at += _width(data, at)
        if size < -1:
            return -1
        if size > 0:
            at += size
        count -= 1
    return -1 if count else at


def _size(data: bytes, at: i64) -> i64:
    """The zigzag number at `at`; -2 for one of more than five bytes, which no size is either."""
    raw: i64 = 0
    shift: i64 = 0
    while shift <= 28:
        byte: i64 = data[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1)
        shift += 7
    return -2


def _width(data: bytes, at: i64) -> i64:
    """How many bytes the number at `at` takes."""
    width: i64 = 1
    while data[at] >= 0x80:
        at += 1
        width += 1
    return width

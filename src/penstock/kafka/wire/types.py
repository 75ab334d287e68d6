"""Kafka's primitive types: a Reader that trusts nothing, and a Writer."""

from __future__ import annotations

import struct
from collections.abc import Container
from uuid import UUID

from penstock.errors import PeerError
from penstock.ports import Buffer

# Bound methods: the lookup of `unpack_from` would cost as much as the call.
_INT8 = struct.Struct(">b").unpack_from
_INT16 = struct.Struct(">h").unpack_from
_UINT16 = struct.Struct(">H").unpack_from
_INT32 = struct.Struct(">i").unpack_from
_INT64 = struct.Struct(">q").unpack_from
_FLOAT64 = struct.Struct(">d").unpack_from

_PACK_INT8 = struct.Struct(">b").pack
_PACK_INT16 = struct.Struct(">h").pack
_PACK_UINT16 = struct.Struct(">H").pack
_PACK_INT32 = struct.Struct(">i").pack
_PACK_INT64 = struct.Struct(">q").pack
_PACK_FLOAT64 = struct.Struct(">d").pack

_NO_UUID = UUID(int=0)
_VARINT_BITS = 32
_VARLONG_BITS = 64


class Reader:
    """Reads big-endian values from a buffer; whatever does not fit raises PeerError."""

    __slots__ = ("end", "position", "view")

    def __init__(self, data: Buffer, position: int = 0) -> None:
        self.view = memoryview(data)
        self.position = position
        self.end = len(self.view)

    @property
    def remaining(self) -> int:
        return self.end - self.position

    def _short(self, size: int) -> PeerError:
        return PeerError(f"{size} bytes wanted at {self.position}, only {self.end - self.position} are left")

    # Spelled out one by one: a shared method under them would double their time.
    def int8(self) -> int:
        position = self.position
        if position + 1 > self.end:
            raise self._short(1)
        self.position = position + 1
        value: int = _INT8(self.view, position)[0]
        return value

    def int16(self) -> int:
        position = self.position
        if position + 2 > self.end:
            raise self._short(2)
        self.position = position + 2
        value: int = _INT16(self.view, position)[0]
        return value

    def uint16(self) -> int:
        position = self.position
        if position + 2 > self.end:
            raise self._short(2)
        self.position = position + 2
        value: int = _UINT16(self.view, position)[0]
        return value

    def int32(self) -> int:
        position = self.position
        if position + 4 > self.end:
            raise self._short(4)
        self.position = position + 4
        value: int = _INT32(self.view, position)[0]
        return value

    def int64(self) -> int:
        position = self.position
        if position + 8 > self.end:
            raise self._short(8)
        self.position = position + 8
        value: int = _INT64(self.view, position)[0]
        return value

    def float64(self) -> float:
        position = self.position
        if position + 8 > self.end:
            raise self._short(8)
        self.position = position + 8
        value: float = _FLOAT64(self.view, position)[0]
        return value

    def boolean(self) -> bool:
        """Any byte but zero is true."""
        position = self.position
        if position >= self.end:
            raise self._short(1)
        self.position = position + 1
        return self.view[position] != 0

    def uvarint(self, bits: int = _VARINT_BITS) -> int:
        """An unsigned number of at most `bits` bits, seven to a byte, lowest first."""
        view, position, end = self.view, self.position, self.end
        if position < end and view[position] < 0x80:
            self.position = position + 1
            return view[position]
        value = shift = 0
        while position < end:
            byte = view[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value >> bits:
                    break
                self.position = position
                return value
            shift += 7
            if shift >= bits:
                break
        raise PeerError(f"no variable-length number of {bits} bits at {self.position}")

    def varint(self) -> int:
        value = self.uvarint()
        return (value >> 1) ^ -(value & 1)

    def varlong(self) -> int:
        value = self.uvarint(_VARLONG_BITS)
        return (value >> 1) ^ -(value & 1)

    def uuid(self) -> UUID:
        raw = bytes(self.take(16))
        # Most ids in requests are absent, and making a UUID is slow.
        return UUID(bytes=raw) if raw != _NO_UUID.bytes else _NO_UUID

    def take(self, size: int) -> memoryview:
        """The next `size` bytes, not copied."""
        position = self.position
        end = position + size
        if size < 0 or end > self.end:
            raise self._short(size)
        self.position = end
        return self.view[position:end]

    def _text(self, size: int) -> str:
        position = self.position
        end = position + size
        if size < 0 or end > self.end:
            raise self._short(size)
        self.position = end
        try:
            return str(self.view[position:end], "utf-8")
        except UnicodeDecodeError as error:
            raise PeerError(f"a string before {self.position} is not UTF-8: {error.reason}") from None

    def nullable_string(self) -> str | None:
        size = self.int16()
        return None if size == -1 else self._text(size)

    def compact_nullable_string(self) -> str | None:
        size = self.uvarint()
        return None if size == 0 else self._text(size - 1)

    def string(self) -> str:
        return self._text(self.int16())

    def compact_string(self) -> str:
        return self._text(self.uvarint() - 1)

    def nullable_data(self) -> memoryview | None:
        size = self.int32()
        return None if size == -1 else self.take(size)

    def compact_nullable_data(self) -> memoryview | None:
        size = self.uvarint()
        return None if size == 0 else self.take(size - 1)

    def data(self) -> memoryview:
        """Bytes behind their length; a view into the frame, not a copy."""
        return self.take(self.int32())

    def compact_data(self) -> memoryview:
        return self.take(self.uvarint() - 1)

    def array_count(self, smallest: int) -> int:
        """How many elements of at least `smallest` bytes follow; -1 is null."""
        return self._plausible(self.int32(), smallest)

    def compact_array_count(self, smallest: int) -> int:
        return self._plausible(self.uvarint() - 1, smallest)

    def _plausible(self, count: int, smallest: int) -> int:
        # A lie about the count must fail before anything is allocated for it.
        if count < -1 or count * smallest > self.end - self.position:
            raise PeerError(f"{count} elements cannot follow at {self.position}")
        return count

    def tags(self, known: Container[int] = ()) -> dict[int, memoryview]:
        """The tagged fields of a struct that are known, by tag; others are skipped."""
        count = self.uvarint()
        found: dict[int, memoryview] = {}
        if not count:
            return found
        self._plausible(count, 2)
        last = -1
        for _ in range(count):
            tag = self.uvarint()
            # KIP-482: tags ascend, so none comes twice.
            if tag <= last:
                raise PeerError(f"tag {tag} behind tag {last}")
            last = tag
            raw = self.take(self.uvarint())
            if tag in known:
                found[tag] = raw
        return found

    def finish(self) -> None:
        """Refuse bytes that nobody read."""
        if self.position != self.end:
            raise PeerError(f"{self.end - self.position} bytes too many")


class Writer(bytearray):
    """Appends big-endian values to itself; a value out of range raises struct.error."""

    __slots__ = ()

    def int8(self, value: int) -> None:
        self += _PACK_INT8(value)

    def int16(self, value: int) -> None:
        self += _PACK_INT16(value)

    def uint16(self, value: int) -> None:
        self += _PACK_UINT16(value)

    def int32(self, value: int) -> None:
        self += _PACK_INT32(value)

    def int64(self, value: int) -> None:
        self += _PACK_INT64(value)

    def float64(self, value: float) -> None:
        self += _PACK_FLOAT64(value)

    def boolean(self, value: bool) -> None:
        self.append(1 if value else 0)

    def uvarint(self, value: int) -> None:
        while value > 0x7F:
            self.append(value & 0x7F | 0x80)
            value >>= 7
        self.append(value)

    def varint(self, value: int) -> None:
        """Zigzag: small numbers of either sign stay short; serves 32 and 64 bits."""
        self.uvarint(value << 1 if value >= 0 else (-value << 1) - 1)

    def uuid(self, value: UUID) -> None:
        self += value.bytes

    def string(self, value: str) -> None:
        raw = value.encode()
        self += _PACK_INT16(len(raw))
        self += raw

    def compact_string(self, value: str) -> None:
        raw = value.encode()
        self.uvarint(len(raw) + 1)
        self += raw

    def nullable_string(self, value: str | None) -> None:
        if value is None:
            self += b"\xff\xff"
        else:
            self.string(value)

    def compact_nullable_string(self, value: str | None) -> None:
        if value is None:
            self.append(0)
        else:
            self.compact_string(value)

    def data(self, value: Buffer) -> None:
        self += _PACK_INT32(len(value))
        self += value

    def compact_data(self, value: Buffer) -> None:
        self.uvarint(len(value) + 1)
        self += value

    def nullable_data(self, value: Buffer | None) -> None:
        if value is None:
            self += b"\xff\xff\xff\xff"
        else:
            self.data(value)

    def compact_nullable_data(self, value: Buffer | None) -> None:
        if value is None:
            self.append(0)
        else:
            self.compact_data(value)

    def array_count(self, value: int) -> None:
        """The length of an array; -1 is null."""
        self += _PACK_INT32(value)

    def compact_array_count(self, value: int) -> None:
        self.uvarint(value + 1)

    def tags(self, fields: list[tuple[int, Buffer]]) -> None:
        """Tagged fields, which must be in ascending order of their tags."""
        self.uvarint(len(fields))
        for tag, raw in fields:
            self.uvarint(tag)
            self.uvarint(len(raw))
            self += raw

"""The columns of a message table: what type a field has, and which versions carry it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast
from uuid import UUID

from penstock.kafka.wire.types import Reader, Writer
from penstock.ports import Buffer

T = TypeVar("T")

# The key under which a dataclass field carries its Column.
WIRE = "wire"
NO_UUID = UUID(int=0)
_LAST = 32_767
NEVER = _LAST  # the flexible version of messages that have none


@dataclass(frozen=True, slots=True)
class Codec(Generic[T]):
    """One way to read and write a value, and the fewest bytes it takes."""

    read: Callable[[Reader], T]
    write: Callable[[Writer, T], None]
    smallest: int


@dataclass(frozen=True, slots=True)
class Column:
    """What the protocol says about one field."""

    of: Scalar[Any] | type[Any]
    is_array: bool = False
    since: int = 0
    until: int = _LAST
    nullable_since: int | None = None
    tag: int | None = None
    ignorable: bool = False

    def is_in(self, version: int) -> bool:
        """Whether this version carries the field."""
        return self.since <= version <= self.until

    def is_nullable_in(self, version: int) -> bool:
        return self.nullable_since is not None and version >= self.nullable_since


@dataclass(frozen=True, slots=True)
class Scalar(Generic[T]):
    """A primitive type; calling it declares a field of that type."""

    name: str
    default: T
    plain: Codec[T]
    compact: Codec[T]
    plain_nullable: Codec[T | None] | None = None
    compact_nullable: Codec[T | None] | None = None

    def __call__(
        self,
        *,
        default: T | None = None,
        since: int = 0,
        until: int = _LAST,
        tag: int | None = None,
        ignorable: bool = False,
    ) -> T:
        """A field; an ignorable one is left out silently where a version does not carry it."""
        column = Column(self, since=since, until=until, tag=tag, ignorable=ignorable)
        return dataclasses.field(default=self.default if default is None else default, metadata={WIRE: column})

    def or_null(
        self,
        *,
        default: T | None = None,
        since: int = 0,
        until: int = _LAST,
        nullable_since: int = 0,
        tag: int | None = None,
        ignorable: bool = False,
    ) -> T | None:
        """A field that may be null from version `nullable_since` on."""
        column = Column(self, since=since, until=until, nullable_since=nullable_since, tag=tag, ignorable=ignorable)
        return dataclasses.field(default=default, metadata={WIRE: column})


def array(
    of: Scalar[T] | type[T],
    *,
    since: int = 0,
    until: int = _LAST,
    tag: int | None = None,
    ignorable: bool = False,
) -> list[T]:
    """A field with a list; empty unless told."""
    column = Column(of, is_array=True, since=since, until=until, tag=tag, ignorable=ignorable)
    return cast("list[T]", dataclasses.field(default_factory=list, metadata={WIRE: column}))


def array_or_null(
    of: Scalar[T] | type[T],
    *,
    since: int = 0,
    until: int = _LAST,
    nullable_since: int = 0,
    ignorable: bool = False,
    default_null: bool = False,
) -> list[T] | None:
    """A field with a list that may be null; empty unless told."""
    column = Column(of, is_array=True, since=since, until=until, nullable_since=nullable_since, ignorable=ignorable)
    if default_null:
        return dataclasses.field(default=None, metadata={WIRE: column})
    return cast("list[T] | None", dataclasses.field(default_factory=list, metadata={WIRE: column}))


def struct(of: type[T], *, since: int = 0, until: int = _LAST, tag: int | None = None, ignorable: bool = False) -> T:
    """A field with one struct, all defaults unless told."""
    column = Column(of, since=since, until=until, tag=tag, ignorable=ignorable)
    return dataclasses.field(default_factory=of, metadata={WIRE: column})


def struct_or_null(of: type[T], *, since: int = 0) -> T | None:
    """A field with one struct, or null, as it is unless told."""
    column = Column(of, since=since, nullable_since=since)
    return dataclasses.field(default=None, metadata={WIRE: column})


def _fixed(
    name: str, default: T, size: int, read: Callable[[Reader], T], write: Callable[[Writer, T], None]
) -> Scalar[T]:
    codec = Codec(read, write, size)
    return Scalar(name, default, codec, codec)


int8 = _fixed("int8", 0, 1, Reader.int8, Writer.int8)
int16 = _fixed("int16", 0, 2, Reader.int16, Writer.int16)
uint16 = _fixed("uint16", 0, 2, Reader.uint16, Writer.uint16)
int32 = _fixed("int32", 0, 4, Reader.int32, Writer.int32)
int64 = _fixed("int64", 0, 8, Reader.int64, Writer.int64)
float64 = _fixed("float64", 0.0, 8, Reader.float64, Writer.float64)
boolean = _fixed("boolean", False, 1, Reader.boolean, Writer.boolean)
uuid = _fixed("uuid", NO_UUID, 16, Reader.uuid, Writer.uuid)

string: Scalar[str] = Scalar(
    "string",
    "",
    plain=Codec(Reader.string, Writer.string, 2),
    compact=Codec(Reader.compact_string, Writer.compact_string, 1),
    plain_nullable=Codec(Reader.nullable_string, Writer.nullable_string, 2),
    compact_nullable=Codec(Reader.compact_nullable_string, Writer.compact_nullable_string, 1),
)

# Bytes and record batches are views into the frame that they came in.
data: Scalar[Buffer] = Scalar(
    "data",
    b"",
    plain=Codec(Reader.data, Writer.data, 4),
    compact=Codec(Reader.compact_data, Writer.compact_data, 1),
    plain_nullable=Codec(Reader.nullable_data, Writer.nullable_data, 4),
    compact_nullable=Codec(Reader.compact_nullable_data, Writer.compact_nullable_data, 1),
)

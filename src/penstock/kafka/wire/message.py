"""Messages are dataclasses; their codecs are compiled from their columns, once per version."""

from __future__ import annotations

import dataclasses
import struct as _struct
from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

from penstock.errors import PeerError
from penstock.kafka.wire.fields import WIRE, Codec, Column, Scalar
from penstock.kafka.wire.types import Reader, Writer
from penstock.ports import Buffer


class Struct:
    """A part of a message."""

    __slots__ = ()


class Message(Struct):
    """The body of a request or a response."""

    __slots__ = ()

    versions: ClassVar[tuple[int, int]]
    flexible: ClassVar[int]


M = TypeVar("M", bound=Message)


def decode(cls: type[M], data: Buffer, version: int, position: int = 0) -> M:
    """The message that fills `data` from `position` to its end; PeerError if it does not."""
    reader = Reader(data, position)
    message: M = _message_codec(cls, version).read(reader)
    reader.finish()
    return message


def decode_request(cls: type[M], data: Buffer, version: int, position: int) -> M:
    """A client's message; bytes behind it are ignored, as Kafka does.

    librdkafka counts on that: when it asks for the metadata of all topics, it sends three bytes too many.
    """
    message: M = _message_codec(cls, version).read(Reader(data, position))
    return message


def encode(message: Message, version: int) -> bytes:
    """The bytes of a message; ValueError if this version cannot say it."""
    writer = Writer()
    encode_into(writer, message, version)
    return bytes(writer)


def encode_into(writer: Writer, message: Message, version: int) -> None:
    """Append a message to what the writer holds."""
    codec = _message_codec(type(message), version)
    try:
        codec.write(writer, message)
    except (_struct.error, TypeError, AttributeError) as error:
        raise ValueError(f"{type(message).__name__} version {version}: {error}") from error


def columns(cls: type[Struct]) -> list[tuple[str, Column]]:
    """The fields of a struct in the order of the wire, by name."""
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # every Struct is a dataclass
    return [(field.name, field.metadata[WIRE]) for field in fields]


_message_codecs: dict[tuple[type[Message], int], Codec[Any]] = {}


def _message_codec(cls: type[Message], version: int) -> Codec[Any]:
    codec = _message_codecs.get((cls, version))
    if codec is None:
        first, last = cls.versions
        if not first <= version <= last:
            raise ValueError(f"{cls.__name__} has no version {version}, only {first} to {last}")
        codec = _struct_codec(cls, version, version >= cls.flexible)
        _message_codecs[cls, version] = codec
    return codec


def _struct_codec(cls: type[Struct], version: int, flexible: bool) -> Codec[Any]:
    table = columns(cls)
    codecs = {name: _column_codec(column, version, flexible) for name, column in table if column.is_in(version)}
    in_order = {name: codecs[name] for name, column in table if name in codecs and column.tag is None}
    tagged = sorted((column.tag, name) for name, column in table if name in codecs and column.tag is not None)
    defaults = _defaults(cls)
    refused = [name for name, column in table if name not in codecs and not column.ignorable]

    read = _struct_reader(cls, [in_order[name].read if name in in_order else defaults[name] for name, _ in table])
    write = _struct_writer([(name, codec.write) for name, codec in in_order.items()])
    if flexible:
        read = _with_tags_read(read, {tag: (name, codecs[name].read) for tag, name in tagged})
        write = _with_tags_written(write, [(tag, name, codecs[name].write, defaults[name]) for tag, name in tagged])
    if refused:
        write = _with_refusals(write, [(name, defaults[name]) for name in refused], version)
    smallest = sum(codec.smallest for codec in in_order.values()) + flexible
    return Codec(read, write, smallest)


def _column_codec(column: Column, version: int, flexible: bool) -> Codec[Any]:
    nullable = column.is_nullable_in(version)
    if column.is_array:
        return _array_codec(_element_codec(column.of, version, flexible), flexible, nullable)
    if nullable and isinstance(column.of, Scalar):
        codec = column.of.compact_nullable if flexible else column.of.plain_nullable
        if codec is None:
            raise TypeError(f"{column.of.name} cannot be null")
        return codec
    codec = _element_codec(column.of, version, flexible)
    return _nullable_struct_codec(codec) if nullable else codec


def _element_codec(of: Scalar[Any] | type[Any], version: int, flexible: bool) -> Codec[Any]:
    if isinstance(of, Scalar):
        return of.compact if flexible else of.plain
    return _struct_codec(of, version, flexible)


def _nullable_struct_codec(codec: Codec[Any]) -> Codec[Any]:
    """A byte says whether the struct follows."""

    def read(reader: Reader) -> Any:
        return codec.read(reader) if reader.int8() >= 0 else None

    def write(writer: Writer, value: Any) -> None:
        writer.int8(-1 if value is None else 1)
        if value is not None:
            codec.write(writer, value)

    return Codec(read, write, 1)


def _array_codec(element: Codec[Any], flexible: bool, nullable: bool) -> Codec[Any]:
    read_count = Reader.compact_array_count if flexible else Reader.array_count
    write_count = Writer.compact_array_count if flexible else Writer.array_count
    read_element, write_element = element.read, element.write
    smallest = max(1, element.smallest)

    def read(reader: Reader) -> list[Any] | None:
        count = read_count(reader, smallest)
        if count < 0:
            if nullable:
                return None
            raise PeerError(f"an array before {reader.position} is null and must not be")
        return [read_element(reader) for _ in range(count)]

    def write(writer: Writer, values: list[Any] | None) -> None:
        if values is None and nullable:
            write_count(writer, -1)
            return
        write_count(writer, len(values))  # type: ignore[arg-type]  # null is refused by len
        for value in values:  # type: ignore[union-attr]
            write_element(writer, value)

    return Codec(read, write, 1 if flexible else 4)


def _defaults(cls: type[Struct]) -> dict[str, Callable[..., Any]]:
    """What makes the default of each field; arguments are ignored, so it stands in for a reader."""

    def constant(value: Any) -> Callable[..., Any]:
        return lambda *_: value

    def fresh(factory: Callable[[], Any]) -> Callable[..., Any]:
        return lambda *_: factory()

    return {
        field.name: constant(field.default)
        if field.default_factory is dataclasses.MISSING
        else fresh(field.default_factory)
        for field in dataclasses.fields(cls)  # type: ignore[arg-type]  # every Struct is a dataclass
    }


def _struct_reader(cls: type[Struct], reads: list[Callable[[Reader], Any]]) -> Callable[[Reader], Any]:
    def read(reader: Reader) -> Any:
        return cls(*[read_field(reader) for read_field in reads])

    return read


def _struct_writer(writes: list[tuple[str, Callable[[Writer, Any], None]]]) -> Callable[[Writer, Any], None]:
    # attrgetter of one name gives a bare value, so each field has its own.
    steps = [(attrgetter(name), write_field) for name, write_field in writes]

    def write(writer: Writer, value: Any) -> None:
        for get, write_field in steps:
            write_field(writer, get(value))

    return write


def _with_tags_read(
    read_fields: Callable[[Reader], Any], tagged: dict[int, tuple[str, Callable[[Reader], Any]]]
) -> Callable[[Reader], Any]:
    def read(reader: Reader) -> Any:
        value = read_fields(reader)
        for tag, raw in reader.tags(tagged).items():
            name, read_field = tagged[tag]
            inner = Reader(raw)
            setattr(value, name, read_field(inner))
            inner.finish()
        return value

    return read


def _with_tags_written(
    write_fields: Callable[[Writer, Any], None],
    tagged: list[tuple[int, str, Callable[[Writer, Any], None], Callable[[], Any]]],
) -> Callable[[Writer, Any], None]:
    def write(writer: Writer, value: Any) -> None:
        write_fields(writer, value)
        present: list[tuple[int, Buffer]] = []
        for tag, name, write_field, default in tagged:
            field = getattr(value, name)
            if field != default():
                raw = Writer()
                write_field(raw, field)
                present.append((tag, raw))
        writer.tags(present)

    return write


def _with_refusals(
    write_fields: Callable[[Writer, Any], None], refused: list[tuple[str, Callable[[], Any]]], version: int
) -> Callable[[Writer, Any], None]:
    def write(writer: Writer, value: Any) -> None:
        for name, default in refused:
            if getattr(value, name) != default():
                raise ValueError(f"version {version} of {type(value).__name__} has no {name}")
        write_fields(writer, value)

    return write

"""A topic's schema as Spark's types, made without Spark's parser: to load that takes half a second of a start."""

from __future__ import annotations

from pyspark.sql import types as T

from penstock.schema import Column, Schema, Type

STRING, BINARY, LONG = T.StringType(), T.BinaryType(), T.LongType()

_PLAIN: dict[str, T.DataType] = {
    "string": STRING, "binary": BINARY, "boolean": T.BooleanType(), "date": T.DateType(),
    "byte": T.ByteType(), "short": T.ShortType(), "int": T.IntegerType(), "long": LONG,
    "float": T.FloatType(), "double": T.DoubleType(),
    "timestamp": T.TimestampType(), "timestamp_ntz": T.TimestampNTZType(),
}  # fmt: skip


def struct_of(schema: Schema) -> T.StructType:
    """The columns of a schema. All of them may be null: what an event lacks is told by us, not by Spark."""
    return _struct(schema.columns)


def _struct(columns: tuple[Column, ...]) -> T.StructType:
    return T.StructType([T.StructField(column.name, _type(column.type)) for column in columns])


def _type(kind: Type) -> T.DataType:
    if kind.name == "decimal":
        return T.DecimalType(*kind.digits)
    if kind.name == "array":
        return T.ArrayType(_type(kind.items[0]))
    if kind.name == "map":
        return T.MapType(_type(kind.items[0]), _type(kind.items[1]))
    if kind.name == "struct":
        return _struct(kind.columns)
    return _PLAIN[kind.name]

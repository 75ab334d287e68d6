"""Whether every value of a declaration has the type that it must have. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, replace
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from penstock.app import App, Delivery, Ingest, Query, QueryOptions, Table, Topic
from penstock.guarantee import Guarantee
from penstock.sources import Source

Declared = TypeVar("Declared", Topic, Table, Query, Ingest, Delivery)

_WORDS: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    Guarantee: "a Guarantee",
    Source: "a source such as sources.Http()",
    tuple: "a name, or several",
    Mapping: "a table of names and values",
    Callable: "a function",
}


def with_sound_types(app: App) -> tuple[App, list[str]]:
    """The app with each value of a wrong type replaced by its default, and a sentence for each of them."""
    faults: list[str] = []
    sound = App(app.name if isinstance(app.name, str) else str(app.name))
    if not isinstance(app.name, str):
        faults.append(f"an app's name must be text, not {app.name!r}")
    sound.topics = [_sound(topic, f"topic {topic.name}", faults) for topic in app.topics]
    sound.tables = [_sound(table, f"table {table.name}", faults) for table in app.tables]
    sound.queries = [_sound(query, f"query {query.name}", faults) for query in app.queries]
    sound.ingests = [_sound(ingest, f"ingest into {ingest.into}", faults) for ingest in app.ingests]
    sound.deliveries = [_sound(delivery, f"delivery {delivery.at}", faults) for delivery in app.deliveries]
    return sound, faults


def _sound(declared: Declared, what: str, faults: list[str]) -> Declared:
    changes: dict[str, Any] = {}
    for name, fault in _type_faults(declared):
        faults.append(f"{what}: {fault}")
        changes[name] = _default(declared, name)
    for name, prefix in (("guarantee", "guarantee: "), ("options", "")):
        inner = getattr(declared, name, None)
        if isinstance(inner, Guarantee | QueryOptions):
            wrong = dict(_type_faults(inner))
            faults += [f"{what}: {prefix}{fault}" for fault in wrong.values()]
            changes[name] = replace(inner, **{field: _default(inner, field) for field in wrong})
    return replace(declared, **changes) if changes else declared


def _type_faults(declared: Any) -> Iterator[tuple[str, str]]:
    """The name of each field whose value has a wrong type, and what is wrong."""
    hints = get_type_hints(type(declared))
    for field in fields(declared):
        value, hint = getattr(declared, field.name), hints[field.name]
        if not _fits(value, hint):
            given = repr(value) if field.repr else f"a {type(value).__name__} with others"  # it may hold a password
            yield field.name, f"{field.name} must be {_in_words(hint)}, not {given}"[:300]


def _fits(value: object, hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(one, inner[0]) for one in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(_fits(k, inner[0]) and _fits(v, inner[1]) for k, v in value.items())
    if origin is Callable:
        return callable(value)
    return isinstance(value, hint) and not (hint is int and isinstance(value, bool))


def _in_words(hint: Any) -> str:
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_in_words(one) for one in get_args(hint) if one is not NoneType)
    return _WORDS.get(get_origin(hint) or hint, str(hint))


def _default(declared: Any, name: str) -> Any:
    field = next(field for field in fields(declared) if field.name == name)
    if field.default is not MISSING:
        return field.default
    if field.default_factory is not MISSING:
        return field.default_factory()
    hint = get_type_hints(type(declared))[name]
    if hint is Source:
        return Source()
    value = getattr(declared, name)
    return tuple(map(str, value)) if get_origin(hint) is tuple else str(value)

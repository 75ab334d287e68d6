"""What a setting is: its default, its limit, its reason; and how a table of settings is read."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_origin, get_type_hints

from penstock.errors import ConfigError

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB
SECOND_MS = 1000
HOUR_MS = 3600 * SECOND_MS
DAY_MS = 24 * HOUR_MS


Settings = TypeVar("Settings")


def setting(
    default: Any, reason: str, *, at_least: int | None = None, at_most: int | None = None, pattern: str | None = None
) -> Any:
    """A configuration field: its default, why it is that, and its bounds; `pattern` is what a whole text matches."""
    metadata = {"reason": reason, "at_least": at_least, "at_most": at_most, "pattern": pattern}
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def clipped(text: str) -> str:
    """What a stranger sent, short enough to be said back: an answer has little room."""
    return text if len(text) <= 100 else f"{text[:100]}…"


def hint(name: str, known: Mapping[str, object]) -> str:
    """ ", did you mean X?" when something known is close to `name`, else nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {close[0]}?" if close else ""


def parameter_fault(given: Iterable[str], known: Sequence[str]) -> str | None:
    """What is wrong with the names of a request's parameters, or None; every door knows `token`."""
    unknown = [name for name in given if name not in (*known, "token")]
    if not unknown:
        return None
    one = len(unknown) == 1
    said = ", ".join(repr(name[:50]) for name in unknown[:5])
    return (
        f"unknown parameter{'' if one else 's'} {said}: known {'is' if len(known) == 1 else 'are'} {', '.join(known)}"
    )


def build_config(
    layers: list[tuple[str, Mapping[str, object]]], table: type[Settings]
) -> tuple[Settings, dict[str, str]]:
    """One table of the configuration from layers (origin, values), later ones winning, and where each came from."""
    fields = {f.name: f for f in dataclasses.fields(table)}  # type: ignore[arg-type]  # every table is a dataclass
    types = get_type_hints(table)
    values: dict[str, object] = {}
    origins = dict.fromkeys(fields, "default")
    faults = []
    for origin, layer in layers:
        for name, raw in layer.items():
            if name not in fields:
                faults.append(f"{origin}: unknown setting {name}{hint(name, fields)}")
                continue
            try:
                values[name] = _typed(types[name], raw, fields[name].metadata)
            except ValueError as wrong:
                faults.append(f"{origin}: {name} {wrong}")
            origins[name] = origin
    if faults:
        raise ConfigError(*faults)
    return table(**values), origins


def _typed(kind: type, raw: object, bounds: Mapping[str, Any]) -> object:
    if get_origin(kind) is not None:
        if not isinstance(raw, Mapping):
            raise ValueError(f"must be a table, not {raw!r}")
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in _flat(raw)}
    if kind is bool:
        if isinstance(raw, bool):
            return raw
        if str(raw).lower() in ("1", "true", "yes", "on"):
            return True
        if str(raw).lower() in ("0", "false", "no", "off"):
            return False
        raise ValueError(f"must be true or false, not {raw!r}")
    if kind is int:
        try:
            number = int(str(raw).replace("_", ""))
        except ValueError:
            raise ValueError(f"must be a whole number, not {raw!r}") from None
        low, high = bounds["at_least"], bounds["at_most"]
        if low is not None and number < low:
            raise ValueError(f"must be at least {low}, not {number}")
        if high is not None and number > high:
            raise ValueError(f"must be at most {high}, not {number}")
        return number
    if not isinstance(raw, str):
        raise ValueError(f"must be text, not {raw!r}")
    if bounds["pattern"] is not None and not re.fullmatch(bounds["pattern"], raw):
        raise ValueError(f"cannot be {clipped(raw)!r}: {bounds['reason']}")
    return raw


def _flat(table: Mapping[str, object], before: str = "") -> Iterator[tuple[str, object]]:
    """(spark.ui.port, 4040) from {"spark": {"ui": {"port": 4040}}}: dots are tables to TOML."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value

"""Where settings come from: a file in the working folder, then the environment, then flags."""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from pathlib import Path

from penstock.config.analyze import AnalyzeConfig
from penstock.config.broker import BrokerConfig
from penstock.config.edge import EdgeConfig
from penstock.config.setting import Settings, build_config, hint
from penstock.config.topic import TOPIC_SETTINGS
from penstock.errors import ConfigError

OWN_FILE, PROJECT_FILE = "penstock.toml", "pyproject.toml"
TABLES: dict[str, type] = {"broker": BrokerConfig, "edge": EdgeConfig, "analyze": AnalyzeConfig}
ADDRESS_VARIABLE = "PENSTOCK_ADDRESS"  # where clients find the broker: no setting of the broker itself
DATA_VARIABLE = "PENSTOCK_DATA"

Layers = list[tuple[str, Mapping[str, object]]]


def load_config(
    folder: Path, environ: Mapping[str, str], flags: Mapping[str, object], table: type[Settings]
) -> tuple[Settings, dict[str, str]]:
    """The settings of one table in force and where each came from; ConfigError names every fault."""
    name = next(name for name, kind in TABLES.items() if kind is table)
    layers = file_layers(folder, name) + environment_layers(environ, name)
    layers += [(f"flag --{name}", {name: value}) for name, value in flags.items() if value is not None]
    faults: list[str] = []
    own: Layers = [(origin, _without_topic_settings(origin, values, faults)) for origin, values in layers]
    try:
        found = build_config(own, table)
    except ConfigError as wrong:
        faults += wrong.faults
    if faults:
        raise ConfigError(*faults)
    return found


def client_address(folder: Path, environ: Mapping[str, str]) -> str:
    """Where a broker started in `folder` is found by its clients."""
    config, _ = load_config(folder, environ, {}, BrokerConfig)
    return config.advertise or config.listen


def file_layers(folder: Path, table: str) -> Layers:
    """One table of the one file in `folder` that has settings of ours."""
    own = _read(folder / OWN_FILE)
    project = _read(folder / PROJECT_FILE)
    tool = (project or {}).get("tool")
    shared = tool.get("penstock") if isinstance(tool, dict) else None
    if own is not None and shared is not None:
        raise ConfigError(f"settings stand in {OWN_FILE} and in [tool.penstock] of {PROJECT_FILE}: keep one of them")
    name, found = (OWN_FILE, own) if own is not None else (f"{PROJECT_FILE} [tool.penstock]", shared or {})
    if not isinstance(found, dict):
        raise ConfigError(f"{name} must be a table")
    faults = [f"{name}: unknown table or setting {key}{_near(key)}" for key in found if key not in TABLES]
    faults += [f"{name}: {key} must be a table, [{key}]" for key in TABLES if not isinstance(found.get(key, {}), dict)]
    if faults:
        raise ConfigError(*faults)
    values = found.get(table, {})
    return [(name, values if isinstance(values, dict) else {})]


def environment_layers(environ: Mapping[str, str], table: str) -> Layers:
    """One layer a variable, so that its name is the origin."""
    layers: Layers = []
    prefix = f"PENSTOCK_{table.upper()}_"
    if DATA_VARIABLE in environ and table == "broker":
        layers.append((DATA_VARIABLE, {"data": environ[DATA_VARIABLE]}))
    for variable in sorted(environ):
        if variable.startswith(prefix):
            layers.append((variable, {variable.removeprefix(prefix).lower(): environ[variable]}))
    return layers


def _without_topic_settings(origin: str, values: Mapping[str, object], faults: list[str]) -> dict[str, object]:
    """The values that a node may have; each topic setting among the others is told in `faults`."""
    own = {}
    for name, value in values.items():
        misplaced = [dotted for dotted in _dotted(name, value) if dotted in TOPIC_SETTINGS]
        faults += [
            f"{origin}: {topic_setting} is a setting of a topic, not of the node: give it with --config to "
            "'penstock topics create' or 'alter'"
            for topic_setting in misplaced
        ]
        if not misplaced:
            own[name] = value
    return own


def _dotted(name: str, value: object) -> list[str]:
    """Kafka's names that may be meant: retention.ms is a table to TOML, and RETENTION_MS to a shell."""
    if isinstance(value, dict):
        return [found for key, inner in value.items() for found in _dotted(f"{name}.{key}", inner)]
    return list(dict.fromkeys([name, name.replace("_", ".")]))


def _near(key: str) -> str:
    for table, kind in TABLES.items():
        if any(field.name == key for field in dataclasses.fields(kind)):
            return f": it belongs below [{table}]"
    return hint(key, TABLES)


def _read(path: Path) -> dict[str, object] | None:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise ConfigError(f"{path.name} cannot be read: {wrong}") from None
    except OSError as wrong:
        raise ConfigError(f"{path.name} cannot be read: {wrong.strerror}") from None

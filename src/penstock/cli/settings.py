"""Where settings come from: a file in the working folder, then the environment, then flags."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from penstock.config import TOPIC_SETTINGS, BrokerConfig, build_config, hint
from penstock.errors import ConfigError

OWN_FILE, PROJECT_FILE = "penstock.toml", "pyproject.toml"
TABLES = {"broker": BrokerConfig}
PREFIX = "PENSTOCK_BROKER_"
ADDRESS_VARIABLE = "PENSTOCK_ADDRESS"  # where clients find the broker: no setting of the broker itself
DATA_VARIABLE = "PENSTOCK_DATA"

Layers = list[tuple[str, Mapping[str, object]]]


def load_config(
    folder: Path, environ: Mapping[str, str], flags: Mapping[str, object]
) -> tuple[BrokerConfig, dict[str, str]]:
    """The settings in force and where each came from; ConfigError names every fault."""
    layers = file_layers(folder) + environment_layers(environ)
    layers += [(f"flag --{name}", {name: value}) for name, value in flags.items() if value is not None]
    faults: list[str] = []
    own: Layers = [(origin, _without_topic_settings(origin, values, faults)) for origin, values in layers]
    try:
        found = build_config(own)
    except ConfigError as wrong:
        faults += wrong.faults
    if faults:
        raise ConfigError(*faults)
    return found


def client_address(folder: Path, environ: Mapping[str, str]) -> str:
    """Where a broker started in `folder` is found by its clients."""
    config, _ = load_config(folder, environ, {})
    return config.advertise or config.listen


def file_layers(folder: Path) -> Layers:
    """The table [broker] of the one file in `folder` that has settings of ours."""
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
    broker = found.get("broker", {})
    if faults:
        raise ConfigError(*faults)
    if not isinstance(broker, dict):
        raise ConfigError(f"{name}: broker must be a table, [broker]")
    return [(name, broker)]


def environment_layers(environ: Mapping[str, str]) -> Layers:
    """One layer a variable, so that its name is the origin."""
    layers: Layers = []
    if DATA_VARIABLE in environ:
        layers.append((DATA_VARIABLE, {"data": environ[DATA_VARIABLE]}))
    for variable in sorted(environ):
        if variable.startswith(PREFIX):
            layers.append((variable, {variable.removeprefix(PREFIX).lower(): environ[variable]}))
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
    if key in BrokerConfig.__dataclass_fields__:
        return ": it belongs below [broker]"
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

"""Where settings come from: a file in the working folder, then the environment, then flags."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

from penstock.config import BrokerConfig, build_config, hint
from penstock.errors import ConfigError

OWN_FILE, PROJECT_FILE = "penstock.toml", "pyproject.toml"
TABLES = {"broker": BrokerConfig}
PREFIX = "PENSTOCK_BROKER_"
ADDRESS_VARIABLE = "PENSTOCK_BROKER_ADDRESS"  # where clients find the broker: no setting of the broker itself
DATA_VARIABLE = "PENSTOCK_DATA"

Layers = list[tuple[str, Mapping[str, object]]]


def load_config(
    folder: Path, environ: Mapping[str, str], flags: Mapping[str, object]
) -> tuple[BrokerConfig, dict[str, str]]:
    """The settings in force and where each came from; ConfigError names every fault."""
    layers = file_layers(folder) + environment_layers(environ)
    layers += [(f"flag --{name}", {name: value}) for name, value in flags.items() if value is not None]
    return build_config(layers)


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
        if variable.startswith(PREFIX) and variable != ADDRESS_VARIABLE:
            layers.append((variable, {variable.removeprefix(PREFIX).lower(): environ[variable]}))
    return layers


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

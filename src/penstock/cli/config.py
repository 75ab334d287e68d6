"""`penstock config`: the settings in force, where each came from, and what it is for."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from penstock.cli.shared.output import json_option, print_facts, print_json
from penstock.config.layers import TABLES, load_config
from penstock.config.setting import hint
from penstock.config.topic import TOPIC_SETTINGS
from penstock.errors import ConfigError

# As Spark itself redacts, and what it forgets: jaas holds a password among other words.
_SECRET = re.compile(r"token|password|passphrase|secret|credential|(access|account|api)[._-]?key|jaas", re.IGNORECASE)
_LARGEST = {"int": 2**31 - 1, "long": 2**63 - 1}


def _setting_names(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    return [setting["name"] for setting in explanations() if setting["name"].startswith(begun)]


@click.group("config")
def command() -> None:
    """Show the settings in force, and explain them."""


@command.command("show")
@click.option("--origin", is_flag=True, help="Say where each setting came from.")
@click.option("--data", metavar="DIR", help="Also show the settings that Spark had in the last run on this folder.")
@json_option
def show(origin: bool, data: str | None, as_json: bool) -> None:
    """Print the settings in force in this folder, as penstock.toml would have them."""
    tables: dict[str, tuple[Any, dict[str, str]]] = {
        name: load_config(Path.cwd(), os.environ, {}, table) for name, table in TABLES.items()
    }
    spark = _spark_settings(data or tables["broker"][0].data, asked=data is not None)
    if as_json:
        told = {name: _told_json(*found, origin) for name, found in tables.items()}
        print_json(told | ({"spark": _spark_json(spark, origin)} if spark else {}))
        return
    for number, (name, (config, origins)) in enumerate(tables.items()):
        click.echo(f"\n[{name}]" if number else f"[{name}]")
        _print_table(_shown(config), origins if origin else None)
    for name, settings in spark.items():
        click.echo(f"\n# Spark in the last run, {name}")
        values = {f"# {key}": setting["value"] for key, setting in settings.items()}
        origins = {f"# {key}": setting["origin"] for key, setting in settings.items()}
        _print_table(values, origins if origin else None)


def _print_table(values: dict[str, Any], origins: dict[str, str] | None) -> None:
    names = max(map(len, values))
    texts = {key: _toml(value) for key, value in values.items()}
    width = max(map(len, texts.values()))
    for key, text in texts.items():
        click.echo(f"{key:<{names}} = {text:<{width}}  # {origins[key]}" if origins else f"{key:<{names}} = {text}")


def _spark_settings(data: str, asked: bool) -> dict[str, dict[str, dict[str, str]]]:
    """What `penstock run` gave Spark the last time, for the session and for each query; nothing if it never ran."""
    path = Path(data, "analyze", "spark-settings.json")
    try:
        kept = json.loads(path.read_text("utf-8"))
    except OSError:
        if asked:
            raise ConfigError(f"no app with queries has run on {data}: there is no {path}") from None
        return {}
    names = {name: "the session" if name == "session" else f"query {name}" for name in kept}
    return {
        names[name]: {key: one | {"value": _masked(key, one["value"])} for key, one in settings.items()}
        for name, settings in kept.items()
        if settings
    }


def _spark_json(spark: dict[str, dict[str, dict[str, str]]], origin: bool) -> dict[str, Any]:
    if origin:
        return dict(spark)
    return {name: {key: one["value"] for key, one in settings.items()} for name, settings in spark.items()}


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _told_json(config: Any, origins: dict[str, str], origin: bool) -> dict[str, Any]:
    values = _shown(config)
    return {n: {"value": v, "origin": origins[n]} for n, v in values.items()} if origin else values


def _shown(config: Any) -> dict[str, Any]:
    """A table's values, but for secrets."""
    return {name: _masked(name, value) for name, value in dataclasses.asdict(config).items()}


def _masked(name: str, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _masked(key, inner) for key, inner in value.items()}
    return "***" if value and _SECRET.search(name) else value


@command.command("explain")
@click.argument("name", required=False, shell_complete=_setting_names)
@json_option
def explain(name: str | None, as_json: bool) -> None:
    """Say what a setting is for, its default and its bounds, in every tier that has it; without NAME: all of them."""
    known = {setting["name"]: setting for setting in explanations()}
    if name is not None:
        wanted = name.removeprefix("broker.")
        alike = [wanted] if wanted != name else [name, *(f"{table}.{name}" for table in TABLES)]
        found = {one: known[one] for one in alike if one in known}
        if not found:
            near = hint(wanted, known) or ": 'penstock config explain' alone tells all of them"
            raise ConfigError(f"there is no setting {name}{near}")
        known = found
    if as_json:
        print_json(list(known.values()))
        return
    for number, setting in enumerate(known.values()):
        if number:
            click.echo()
        click.echo(setting["name"])
        print_facts([(key.replace("_", " "), _text(value)) for key, value in _told(setting)], indent="  ")


def explanations() -> Iterator[dict[str, Any]]:
    """Every setting: of the broker by its name in [broker], of other tiers as TABLE.NAME, of topics by Kafka's name."""
    for table, field in ((name, field) for name, kind in TABLES.items() for field in dataclasses.fields(kind)):
        yield {
            "name": field.name if table == "broker" else f"{table}.{field.name}",
            "of": table,
            "default": {} if field.default is dataclasses.MISSING else field.default,
            "at_least": field.metadata["at_least"],
            "at_most": field.metadata["at_most"],
            "one_of": None,
            "reason": field.metadata["reason"],
            "variable": f"PENSTOCK_{table.upper()}_{field.name.upper()}",
        }
    for setting in TOPIC_SETTINGS.values():
        is_number = setting.kind in ("int", "long") and not setting.choices
        yield {
            "name": setting.name,
            "of": "topic",
            "default": setting.default,
            "at_least": setting.at_least if is_number else None,
            "at_most": _LARGEST[setting.kind] if is_number else None,
            "one_of": list(setting.choices) or None,
            "reason": setting.doc,
            "variable": None,
        }


def _told(setting: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in setting.items():
        if key == "at_most" and setting["at_least"] is not None and value in (None, _LARGEST["long"]):
            yield key, "no limit"
        elif key != "name" and value is not None:
            yield key, value


def _text(value: Any) -> str:
    if isinstance(value, list):
        return " or ".join(value)
    if isinstance(value, bool):
        return str(value).lower()
    return "empty" if value == "" else str(value)

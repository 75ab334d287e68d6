"""Where settings come from, and which of them wins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.config.addresses import parse_address
from penstock.config.broker import BrokerConfig
from penstock.config.layers import client_address, load_config
from penstock.errors import ConfigError


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, "utf-8")


def test_flags_win_over_variables_and_variables_over_the_file(tmp_path: Path) -> None:
    """And each value knows where it came from."""
    write(tmp_path, "penstock.toml", '[broker]\ndata = "file"\nlisten = "127.0.0.1:1"\nsync_threads = 2\n')
    environ = {"PENSTOCK_BROKER_LISTEN": "127.0.0.1:2", "PENSTOCK_BROKER_DATA": "variable"}
    config, origins = load_config(tmp_path, environ, {"data": "flag", "metrics": None}, BrokerConfig)
    assert (config.data, config.listen, config.sync_threads) == ("flag", "127.0.0.1:2", 2)
    assert origins["data"] == "flag --data"
    assert origins["listen"] == "PENSTOCK_BROKER_LISTEN"
    assert origins["sync_threads"] == "penstock.toml"
    assert origins["metrics"] == "default"


def test_pyproject_may_hold_the_settings(tmp_path: Path) -> None:
    """In [tool.penstock]; other tools' tables are none of our business."""
    write(tmp_path, "pyproject.toml", '[tool.other]\nx = 1\n[tool.penstock.broker]\ndata = "here"\n')
    config, origins = load_config(tmp_path, {}, {}, BrokerConfig)
    assert (config.data, origins["data"]) == ("here", "pyproject.toml [tool.penstock]")


def test_a_pyproject_without_us_is_fine_beside_our_own_file(tmp_path: Path) -> None:
    """Only two places with settings of ours contradict each other."""
    write(tmp_path, "pyproject.toml", "[project]\nname = 'x'\n")
    write(tmp_path, "penstock.toml", "[broker]\ninsecure = true\n")
    assert load_config(tmp_path, {}, {}, BrokerConfig)[0].insecure


def test_data_has_a_short_variable_that_the_long_one_beats(tmp_path: Path) -> None:
    """PENSTOCK_DATA is for every command to come."""
    assert load_config(tmp_path, {"PENSTOCK_DATA": "short"}, {}, BrokerConfig)[0].data == "short"
    both = {"PENSTOCK_DATA": "short", "PENSTOCK_BROKER_DATA": "long"}
    assert load_config(tmp_path, both, {}, BrokerConfig)[0].data == "long"


def test_the_address_for_clients_is_no_setting_of_the_broker(tmp_path: Path) -> None:
    """Both may stand in one environment."""
    load_config(tmp_path, {"PENSTOCK_ADDRESS": "127.0.0.1:9092"}, {}, BrokerConfig)


def test_clients_ask_where_a_broker_of_this_folder_would_listen(tmp_path: Path) -> None:
    """The address told to clients goes before the one listened on; without a file it is the default."""
    assert client_address(tmp_path, {}) == BrokerConfig().listen
    write(tmp_path, "penstock.toml", '[broker]\nlisten = "127.0.0.1:1"\n')
    assert client_address(tmp_path, {}) == "127.0.0.1:1"
    assert client_address(tmp_path, {"PENSTOCK_BROKER_ADVERTISE": "here:2"}) == "here:2"


@pytest.mark.parametrize(
    ("file", "environ", "words"),
    [
        ("[broker]\nlistn = 'x'\n", {}, "penstock.toml: unknown setting listn, did you mean listen?"),
        ("[brokr]\n", {}, "unknown table or setting brokr, did you mean broker?"),
        ("listen = 'x'\n", {}, "listen: it belongs below [broker]"),
        ("broker = 1\n", {}, "broker must be a table"),
        ("[broker]\nretention.ms = 5\n", {}, "retention.ms is a setting of a topic, not of the node"),
        ("", {"PENSTOCK_BROKER_RETENTION_MS": "5"}, "retention.ms is a setting of a topic, not of the node"),
        ("[broker\n", {}, "penstock.toml cannot be read"),
        ("", {"PENSTOCK_BROKER_LISTN": "x"}, "PENSTOCK_BROKER_LISTN: unknown setting listn, did you mean listen?"),
        ("", {"PENSTOCK_BROKER_SYNC_THREADS": "0"}, "sync_threads must be at least 1, not 0"),
        ("", {"PENSTOCK_BROKER_INSECURE": "maybe"}, "insecure must be true or false"),
    ],
)
def test_a_wrong_setting_is_named_with_its_place(
    tmp_path: Path, file: str, environ: dict[str, str], words: str
) -> None:
    """With a hint where one is near."""
    write(tmp_path, "penstock.toml", file)
    with pytest.raises(ConfigError) as failed:
        load_config(tmp_path, environ, {}, BrokerConfig)
    assert words in str(failed.value)


def test_settings_in_two_files_are_refused(tmp_path: Path) -> None:
    """Nobody should have to guess which one counts."""
    write(tmp_path, "penstock.toml", "")
    write(tmp_path, "pyproject.toml", "[tool.penstock]\n")
    with pytest.raises(ConfigError, match="keep one"):
        load_config(tmp_path, {}, {}, BrokerConfig)


def test_addresses_are_read_as_people_write_them() -> None:
    """IPv6 stands in brackets."""
    assert parse_address("127.0.0.1:9092") == ("127.0.0.1", 9092)
    assert parse_address("[::1]:0") == ("::1", 0)
    for wrong in ("", "host", "host:", ":1", "::1:5", "host:x", "host:65536", "host:-1"):
        with pytest.raises(ValueError):
            parse_address(wrong)


def test_secrets_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither ours nor those among Spark's settings, with --origin, with --json, of this folder or of the last run."""
    canary = "canary-4711"
    write(tmp_path, "penstock.toml", f'[edge]\ntoken = "{canary}"\n[analyze.spark]\nspark.ssl.password = "{canary}"\n')
    names = ("spark.a.secret", "spark.ssl.keyStorePassword", "spark.hadoop.fs.s3a.access.key", "kafka.sasl.jaas.config")
    kept = {"session": {name: {"value": canary, "origin": "[analyze.spark]"} for name in names}}
    (tmp_path / ".penstock" / "analyze").mkdir(parents=True)
    (tmp_path / ".penstock" / "analyze" / "spark-settings.json").write_text(json.dumps(kept))
    monkeypatch.chdir(tmp_path)
    for flags in ([], ["--origin"], ["--json"], ["--json", "--origin"], ["--data", ".penstock"]):
        assert main(["config", "show", *flags]) == 0
        shown = capsys.readouterr().out
        assert canary not in shown
        assert "***" in shown
        assert "spark.a.secret" in shown

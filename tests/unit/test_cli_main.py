"""The command as people meet it: help, versions, and failures as one sentence with the right exit status."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from penstock import __version__
from penstock.cli.main import COMMANDS, command, main
from penstock.errors import ConfigError, PenstockError

PENSTOCK = [sys.executable, "-c", "import sys; from penstock.cli.main import main; sys.exit(main())"]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        monkeypatch.delenv(name)


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise error

    module = importlib.import_module("penstock.cli.completion")
    monkeypatch.setattr(module, "command", click.command("completion")(fail))


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a single import of what the commands need."""
    assert main(["--help"]) == 0
    said = capsys.readouterr().out
    assert all(name in said and text in said for name, text in COMMANDS.items())


def test_help_imports_nothing_heavy() -> None:
    """Clients, codecs and tiers wait until a command needs them: that keeps help under 150 ms."""
    probe = (
        "import sys; from penstock.cli.main import main; main(['--help']); print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    heavy = {
        "confluent_kafka",
        "msgspec",
        "cramjam",
        "crc32c",
        "jgo",
        "asyncio",
        "json",
        "socket",
        "tomllib",
        "logging",
    }
    assert loaded & heavy == set()
    ours = {name for name in loaded if name.startswith("penstock")}
    assert ours == {"penstock", "penstock.cli", "penstock.cli.main", "penstock.errors"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_table_is_there(name: str) -> None:
    """Under that name, with a help of its own."""
    command = importlib.import_module(f"penstock.cli.{name}").command
    assert command.name == name
    assert CliRunner().invoke(command, ["--help"]).exit_code == 0


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    """In one line."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"penstock, version {__version__}\n"


@pytest.mark.parametrize("command", [["consume"], ["groups", "reset"], ["tap"]])
def test_the_help_of_a_command_that_takes_a_start_names_all_words(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of Kafka, too."""
    assert main([*command, "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "beginning (or earliest), end (or latest, now), an offset" in said


def test_a_mistyped_command_gets_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    """Wrong use is exit status 2, and says where help is."""
    assert main(["produse"]) == 2
    assert "did you mean produce?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong",
    [
        ["topics"],
        ["topics", "create"],
        ["topics", "create", "t", "--partitions", "0"],
        ["topics", "create", "t", "--partitions", "200000"],
        ["topics", "create", "t", "--config", "nonsense"],
        ["topics", "alter", "t"],
        ["topics", "list", "--broker", "nowhere"],
        ["topics", "list", "--broker", "h:99999"],
        ["produce"],
        ["produce", "t", "--key", "k", "--key-separator", ":"],
        ["produce", "t", "--acks", "2"],
        ["consume", "t", "--from", "yesterday"],
        ["groups", "reset", "g", "--to", "yesterday"],
        ["tap", "t", "--from", "yesterday"],
        ["consume", "t", "--show", "colour"],
        ["consume", "t", "--show", "key", "--json"],
        ["completion", "csh"],
        ["config", "explain", "listn"],
        ["config", "explain", "nosuch"],
        ["broker", "--listen", "0.0.0.0:0"],
        ["broker", "--listen", "nonsense"],
        ["doctor", "--data", "not-there"],
    ],
)
def test_wrong_use_is_status_2_in_plain_words(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Never a traceback."""
    assert main(wrong) == 2
    said = capsys.readouterr()
    assert "Traceback" not in said.err + said.out
    assert (said.err + said.out).strip()


NAMED = [
    ["topics", "create"],
    ["topics", "describe"],
    ["topics", "alter", "--partitions", "2"],
    ["topics", "delete", "--yes"],
    ["produce"],
    ["consume"],
    ["consume", "t", "--until-end", "--group"],
    ["groups", "describe"],
    ["groups", "reset", "--to", "latest"],
    ["groups", "reset", "g", "--to", "latest", "--topic"],
    ["groups", "delete", "--yes"],
    ["transactions", "open"],
    ["transactions", "describe"],
    ["transactions", "abort"],
    ["transactions", "abort", "--topic"],
    ["tap"],
]


@pytest.mark.parametrize("command", NAMED, ids=" ".join)
def test_a_name_that_no_broker_could_take_is_refused_at_once(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Empty, or longer than Kafka's requests can carry: no broker is asked."""
    assert main([*command, ""]) == 2
    assert "cannot be empty: 'penstock " in capsys.readouterr().err
    assert main([*command, "é" * 20_000]) == 2
    said = capsys.readouterr().err
    assert "at most 32767 bytes, and this one 40000" in said
    assert len(said) < 500


def test_an_unknown_setting_that_resembles_none_has_a_way_on(capsys: pytest.CaptureFixture[str]) -> None:
    """The list of all of them."""
    assert main(["config", "explain", "nosuch"]) == 2
    assert "'penstock config explain' alone tells all of them" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (ConfigError("first fault", "second fault"), 2, ["penstock: first fault.\n", "penstock: second fault.\n"]),
        (PenstockError("it went wrong"), 1, ["penstock: it went wrong.\n"]),
        (OSError(28, "No space left on device"), 1, ["No space left on device"]),
        (ZeroDivisionError("oops"), 1, ["ZeroDivisionError: oops", "PENSTOCK_DEBUG=1"]),
        (KeyboardInterrupt(), 1, ["penstock: stopped.\n"]),
    ],
)
def test_a_failure_is_a_sentence_and_a_status(
    error: BaseException, status: int, words: list[str],
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """Told apart by who must act."""
    fail_with(error, monkeypatch)
    assert main(["completion"]) == status
    said = capsys.readouterr().err
    assert "Traceback" not in said
    assert all(word in said for word in words), said


def test_a_failure_of_the_client_library_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever call it came out of."""
    from confluent_kafka import KafkaError, KafkaException

    fail_with(KafkaException(KafkaError(KafkaError._TIMED_OUT)), monkeypatch)
    assert main(["completion"]) == 1
    assert capsys.readouterr().err.startswith("penstock: the broker did not answer in time")


def test_a_traceback_is_there_for_who_asks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """PENSTOCK_DEBUG=1 shows where it happened."""
    monkeypatch.setenv("PENSTOCK_DEBUG", "1")
    fail_with(ZeroDivisionError("oops"), monkeypatch)
    assert main(["completion"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_has_enough_is_no_failure() -> None:
    """As in `penstock config explain | head -1`: quiet, and status 0."""
    process = subprocess.Popen([*PENSTOCK, "config", "explain"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(30) == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_speaks_of_penstock(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The script of each shell asks our command."""
    assert main(["completion", shell]) == 0
    assert "_PENSTOCK_COMPLETE" in capsys.readouterr().out


def test_the_shell_gets_commands_and_options() -> None:
    """What Tab shows after `penstock topics cr`."""
    environ = os.environ | {
        "_PENSTOCK_COMPLETE": "bash_complete",
        "COMP_WORDS": "penstock topics cr",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(PENSTOCK, capture_output=True, text=True, env=environ, check=False)
    assert done.stdout == "plain,create\n"


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("penstock config explain retention.", ["retention.bytes", "retention.ms"]),
        ("penstock consume t --from be", ["beginning"]),
        ("penstock consume t --from ea", ["earliest"]),
        ("penstock groups reset g --to l", ["latest"]),
        ("penstock tap t --from e", ["earliest", "end"]),
        ("penstock produce t --broker x --ac", ["--acks"]),
    ],
)
def test_the_shell_gets_settings_and_places(words: str, offered: list[str]) -> None:
    """What can be known without asking a broker."""
    asked = {"_PENSTOCK_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run(PENSTOCK, capture_output=True, text=True, env=os.environ | asked, check=False)
    assert done.stdout.splitlines() == [f"plain,{word}" for word in offered]


@pytest.mark.parametrize("group", [[], ["topics"], ["config"]])
def test_a_group_alone_prints_its_help(group: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing else."""
    assert main(group) == 2
    said = capsys.readouterr()
    assert said.err.startswith(" ".join(["Usage: penstock", *group, "[OPTIONS]"]))
    assert "Try '" not in said.err


def test_a_broker_takes_only_a_folder_that_can_be_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file, nothing, and somebody else's folder are refused, and left as they were."""
    (tmp_path / "file").write_text("x")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat").write_text("x")
    for data, words in (("file", "a folder"), ("/proc/x", "a folder"), ("", "a folder"), ("photos", "not Penstock's")):
        assert main(["broker", "--data", data, "--listen", "127.0.0.1:0"]) == 2
        assert words in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "photos").iterdir()] == ["cat"]
    assert main(["doctor", "--data", "file"]) == 2
    assert "is a file" in capsys.readouterr().err


def test_a_port_has_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    """Which are said."""
    assert main(["broker", "--listen", "127.0.0.1:99999"]) == 2
    assert "the port must be 0 to 65535" in capsys.readouterr().err


def test_config_show_prints_what_penstock_toml_would_say(capsys: pytest.CaptureFixture[str]) -> None:
    """The output can be pasted."""
    assert main(["config", "show", "--origin"]) == 0
    tables = tomllib.loads(capsys.readouterr().out)
    assert list(tables) == ["broker", "edge", "analyze"]
    assert main(["config", "show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == tables


def test_config_explain_gives_reason_and_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    """For the broker's settings and for topic settings alike."""
    assert main(["config", "explain", "broker.sync_threads", "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["default"], told["at_least"], told["at_most"]) == (8, 1, 64)
    assert told["reason"]
    assert main(["config", "explain", "retention.ms"]) == 0
    said = capsys.readouterr().out
    assert "604800000" in said
    assert "no limit" in said
    assert main(["config", "explain", "segment.bytes"]) == 0
    assert "2147483647" in capsys.readouterr().out


def test_a_setting_that_several_tiers_have_is_explained_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody knows which one was meant; with the tier's name it is that one."""
    assert main(["config", "explain", "insecure", "--json"]) == 0
    assert [one["of"] for one in json.loads(capsys.readouterr().out)] == ["broker", "edge"]
    for tier in ("broker", "edge"):
        assert main(["config", "explain", f"{tier}.insecure", "--json"]) == 0
        assert [one["of"] for one in json.loads(capsys.readouterr().out)] == [tier]


def test_the_installed_command_is_this_one() -> None:
    """`penstock` on the path calls main."""
    (script,) = entry_points(group="console_scripts", name="penstock")
    assert script.load() is main


ACTS = {
    "broker", "compile", "completion", "topics alter", "topics create", "topics delete", "groups delete",
    "groups reset", "transactions abort", "demo", "queries pause", "queries resume", "queries restart", "queries start",
    "queries drop",
}  # fmt: skip


def test_every_command_that_prints_data_has_json() -> None:
    """The others act, and print what they did."""

    def without_json(found: click.Command, path: str) -> set[str]:
        if isinstance(found, click.Group):
            context = click.Context(found)
            parts = {name: found.get_command(context, name) for name in found.list_commands(context)}
            return {one for name, part in parts.items() if part for one in without_json(part, f"{path} {name}".strip())}
        return set() if any("--json" in option.opts for option in found.params) else {path}

    assert without_json(command, "") <= ACTS

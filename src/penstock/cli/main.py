"""The command `penstock`: finds the command asked for, and turns every failure into a sentence and an exit status."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence

import click

from penstock import __version__
from penstock.errors import ConfigError, PenstockError

FAILED, WRONG_USE = 1, 2

# Told here, so that --help imports no command: each may import a client or a whole tier.
COMMANDS = {
    "run": "Run an app: its queue, its doors and its queries.",
    "demo": "Run an app to look at: a fraud desk with its page.",
    "broker": "Run the queue on this machine, in the foreground.",
    "topics": "List, create, describe, alter and delete topics.",
    "produce": "Write records to a topic, one a line.",
    "consume": "Print the records of a topic.",
    "groups": "List, describe, reset and delete consumer groups.",
    "transactions": "List, describe and abort transactions.",
    "tap": "Watch topics live in the terminal.",
    "queries": "Show, pause, start and drop continuous queries.",
    "state": "Print what a query remembers.",
    "compile": "Compile the broker's hot modules, for speed.",
    "doctor": "Check this machine, or stored data for damage.",
    "config": "Show the settings in force, and explain them.",
    "completion": "Print the completion script of a shell.",
}


class Commands(click.Group):
    """The table of commands; a module is imported when its command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"penstock.cli.{cmd_name}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]}{_near(args[0])}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> object:
        try:
            result: object = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            # Whoever read our output has enough. Python would complain when it flushes at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(0) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="penstock")
def command() -> None:
    """Penstock carries a stream without losing a drop: events in, kept in a queue, decided by Spark, pushed out.

    Settings come from penstock.toml or [tool.penstock] in pyproject.toml, then from PENSTOCK_* variables, then from
    flags.

    Exit status: 0 fine, 1 it failed, 2 the command or the configuration is wrong.
    """


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and give its exit status; no failure leaves as a traceback."""
    try:
        status = command.main(args=args, prog_name="penstock", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as asked:
        return _say(asked.format_message(), WRONG_USE)
    except click.UsageError as wrong:
        where = wrong.ctx.command_path if wrong.ctx else "penstock"
        return _say(f"{where}: {_sentence(wrong.format_message())} Try '{where} --help'.", WRONG_USE)
    except click.ClickException as failed:
        return _say(f"penstock: {_sentence(failed.format_message())}", FAILED)
    except click.Abort:
        return _say("penstock: stopped.", FAILED)
    except ConfigError as wrong:
        return _say("\n".join(f"penstock: {_sentence(fault)}" for fault in wrong.faults), WRONG_USE)
    except PenstockError as failed:
        return _say(f"penstock: {_sentence(str(failed))}", FAILED)
    except Exception as error:  # noqa: BLE001  # the top of the program: people get a sentence, not a traceback
        return _unexpected(error)
    return status if isinstance(status, int) else 0


def _unexpected(error: Exception) -> int:
    if os.environ.get("PENSTOCK_DEBUG"):
        import traceback

        traceback.print_exception(error)
        return FAILED
    client = sys.modules.get("confluent_kafka")
    if client is not None and isinstance(error, client.KafkaException):
        from penstock.cli.shared.broker_link import reason

        return _say(f"penstock: {_sentence(reason(error))}", FAILED)
    if isinstance(error, OSError):
        return _say(f"penstock: {_sentence(str(error))}", FAILED)
    return _say(
        f"penstock: something happened that should not ({type(error).__name__}: {error}): run it again with "
        "PENSTOCK_DEBUG=1 and report what it prints.",
        FAILED,
    )


def _say(text: str, status: int) -> int:
    click.echo(text, err=True)
    return status


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _near(name: str) -> str:
    from penstock.config.setting import hint

    return hint(name, COMMANDS)

"""`penstock queries pause|resume|restart|start|drop`: gives an order, and waits until it is obeyed."""

from __future__ import annotations

import fcntl
import os
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from penstock.cli.shared.broker_link import ANSWER_TIMEOUT_S, broker_option
from penstock.cli.shared.output import ask
from penstock.cli.shared.query_reports import ReportReader
from penstock.cli.shared.start_offsets import parse_from
from penstock.client.start_words import BEGINNING as FIRST
from penstock.config.broker import BrokerConfig
from penstock.config.layers import load_config
from penstock.config.setting import hint
from penstock.errors import ConfigError, PenstockError
from penstock.events.headers import batches_topic, orders_topic
from penstock.events.query_order import BEGINNING, LATEST, Action, QueryOrder, encode_order
from penstock.events.query_status import QueryState, QueryStatus
from penstock.kafka.target import KafkaTarget

Command = TypeVar("Command", bound=Callable[..., Any])
_WAIT_S = 120.0  # Spark may take 20 s to stop a query
_GONE_MS = 30_000  # analyze that was killed reports again within that time
_LOOK_S = 0.1
_KEPT = "the order is kept, and obeyed at the next start of the app"


def _order_options(command: Command) -> Command:
    """The query, and how its app is reached."""
    for option in (
        click.option("--app", metavar="APP", default="", help="The app, where several have a query of that name."),
        broker_option,
        click.option(
            "--data",
            metavar="DIR",
            help="The data folder of the run, also while it does not run. Default: that of 'penstock run' here, unless "
            "--broker is given.",
        ),
        click.argument("name"),
    ):
        command = option(command)
    return command


@click.command("pause")
@_order_options
def pause(name: str, data: str | None, broker: KafkaTarget, app: str) -> None:
    """Stop the query NAME until it is resumed, also over starts of the app."""
    _give(QueryOrder(id=_id(), at_ms=_now_ms(), query=name, action=Action.PAUSE), data, broker, app)


@click.command("resume")
@_order_options
def resume(name: str, data: str | None, broker: KafkaTarget, app: str) -> None:
    """Let the query NAME go on from where it was paused."""
    _give(QueryOrder(id=_id(), at_ms=_now_ms(), query=name, action=Action.RESUME), data, broker, app)


@click.command("restart")
@_order_options
def restart(name: str, data: str | None, broker: KafkaTarget, app: str) -> None:
    """Stop the query NAME and start it again from its checkpoint, also one that is parked or paused."""
    _give(QueryOrder(id=_id(), at_ms=_now_ms(), query=name, action=Action.RESTART), data, broker, app)


@click.command("start")
@_order_options
@click.option(
    "--from",
    "begin",
    metavar="beginning|latest|TIME",
    help="Begin there, without state. TIME is like 2026-11-16T12:00Z.",
)
@click.option("--keep-state", is_flag=True, help="Go on with the state that another text of the query has made.")
def start(name: str, data: str | None, broker: KafkaTarget, app: str, begin: str | None, keep_state: bool) -> None:
    """Start the query NAME on a new checkpoint, or go on although the query was changed.

    Results that it has written stay where they are. With --from beginning they are written again, also to a topic that
    is exactly-once.
    """
    if (begin is None) == (not keep_state):
        raise click.UsageError("give either --from beginning|latest|TIME, or --keep-state")
    order = QueryOrder(
        id=_id(),
        at_ms=_now_ms(),
        query=name,
        action=Action.START,
        begin=_begin(begin) if begin else "",
        keep_state=keep_state,
    )
    _give(order, data, broker, app)


@click.command("drop")
@_order_options
@click.option("--yes", is_flag=True, help="Do not ask.")
def drop(name: str, data: str | None, broker: KafkaTarget, app: str, yes: bool) -> None:
    """Remove the checkpoint, the topics and the group of a query that the app no longer declares."""
    order = QueryOrder(id=_id(), at_ms=_now_ms(), query=name, action=Action.DROP)
    _give(order, data, broker, app, lambda writes, app: _confirm(name, writes, app, yes))


ORDERS: Sequence[click.Command] = (pause, resume, restart, start, drop)


def _id() -> str:
    return uuid.uuid4().hex


def _begin(text: str) -> str:
    try:
        found = parse_from(text)
    except ValueError as wrong:
        raise ConfigError(f"--from: {wrong}") from None
    if isinstance(found, datetime):
        return str(int(found.timestamp() * 1000))
    if isinstance(found, int):
        raise ConfigError("--from: a query starts at beginning, latest or a time, not at an offset")
    return BEGINNING if found == FIRST else LATEST


def _confirm(name: str, writes: str, app: str, yes: bool) -> None:
    topics = [writes] * bool(writes) + [batches_topic(app or "APP", name)]
    click.echo(
        f"removes the checkpoint of {name}, and, unless the app still uses them, the topics {' and '.join(topics)}",
        err=True,
    )
    if not yes:
        ask(f"Drop {name}?")


def _give(
    order: QueryOrder,
    data: str | None,
    broker: KafkaTarget,
    app: str,
    confirm: Callable[[str, str], None] | None = None,
) -> None:
    broker, source = _broker_given(broker)
    if data is not None and source is ParameterSource.COMMANDLINE:
        raise click.UsageError("give --data or --broker, not both")
    if data is None and source is ParameterSource.DEFAULT:
        folder = Path(load_config(Path.cwd(), os.environ, {}, BrokerConfig)[0].data)
        if (folder / "run").is_dir():
            data = str(folder)
    if data is not None:
        _give_to_folder(order, Path(data), confirm)
    else:
        _give_to_queue(order, broker, app, confirm)


def _broker_given(broker: KafkaTarget) -> tuple[KafkaTarget, ParameterSource | None]:
    """The broker of the command, or the one given before it: `penstock queries --broker HOST:PORT pause NAME`."""
    context = click.get_current_context()
    source = context.get_parameter_source("broker")
    above = context.parent
    if source is ParameterSource.DEFAULT and above is not None and "broker" in above.params:
        return above.params["broker"], above.get_parameter_source("broker")
    return broker, source


def _give_to_folder(order: QueryOrder, data: Path, confirm: Callable[[str, str], None] | None) -> None:
    from penstock.analyze.checkpoints import Checkpoint, checkpoint_names
    from penstock.analyze.order_logs import FILE, FileLog

    folder = data / "analyze" / "checkpoints"
    names = checkpoint_names(folder)
    if order.query not in names:
        raise ConfigError(f"no query {order.query} has run on {data}{hint(order.query, dict.fromkeys(names))}")
    if confirm is not None:
        confirm(Checkpoint(folder, order.query).kept().writes, "")
    FileLog(data).append(order)

    def is_obeyed() -> bool:
        if order.action is Action.DROP:
            return order.query not in checkpoint_names(folder)
        return Checkpoint(folder, order.query).kept().obeyed.get(FILE) == order.id

    deadline = time.monotonic() + _WAIT_S
    while not is_obeyed():
        if not _runs(data):
            click.echo(f"{order.query}: {_KEPT}")
            return
        if time.monotonic() > deadline:
            raise PenstockError(_late(order))
        time.sleep(_LOOK_S)
    click.echo(f"{order.query}: {_done(order)}")


def _runs(data: Path) -> bool:
    """Whether a `penstock run` holds this folder."""
    try:
        with (data / "run" / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _give_to_queue(
    order: QueryOrder, broker: KafkaTarget, app: str, confirm: Callable[[str, str], None] | None
) -> None:
    reader = ReportReader(broker)
    try:
        reader.read_all()
        last = _report_of(order.query, app, reader)
        app = app or (last.app if last is not None else "")
        if order.action is Action.DROP and last is not None and last.state != QueryState.UNDECLARED:
            raise ConfigError(f"the app {app} declares {order.query}: take it out of the app, and start the app again")
        if confirm is not None:
            confirm(last.writes if last is not None else "", app)
        _produce(QueryOrder(**{**_fields(order), "app": app}), broker)
        deadline = time.monotonic() + _WAIT_S
        while True:
            report = reader.reports.get((app, order.query))
            if report is None and order.action is Action.DROP:
                break
            if report is not None and order.id in report.obeyed:
                break
            if report is None or report.state == QueryState.STOPPED or _now_ms() - report.at_ms > _GONE_MS:
                click.echo(f"{order.query}: {_KEPT}")
                return
            if time.monotonic() > deadline:
                raise PenstockError(_late(order))
            reader.read(_LOOK_S)
        click.echo(f"{order.query}: {_done(order)}")
    finally:
        reader.close()


def _fields(order: QueryOrder) -> dict[str, Any]:
    return {name: getattr(order, name) for name in order.__struct_fields__}


def _report_of(query: str, app: str, reader: ReportReader) -> QueryStatus | None:
    """The last report of the query that is meant; None if only --app says that there is one."""
    found = [report for (of, name), report in reader.reports.items() if name == query and app in ("", of)]
    if len(found) > 1:
        apps = ", ".join(sorted(report.app for report in found))
        raise ConfigError(f"several apps have a query {query} ({apps}): name one with --app")
    if not found and not app:
        near = hint(query, {name: None for _, name in reader.reports})
        raise ConfigError(
            f"no query {query} has reported within the last hour{near}: if its app does not run, name the app with "
            "--app, or its data folder with --data"
        )
    return found[0] if found else None


def _produce(order: QueryOrder, broker: KafkaTarget) -> None:
    from confluent_kafka import KafkaException, Producer

    from penstock.client.factory import producer_settings

    topic = orders_topic(order.app)
    failures: list[Any] = []
    producer: Any = Producer(producer_settings(broker) | {"message.timeout.ms": int(ANSWER_TIMEOUT_S * 1000)})

    def on_delivery(error: Any, _: object) -> None:
        if error is not None:
            failures.append(error)

    producer.produce(topic, encode_order(order), key=order.query, on_delivery=on_delivery)
    left = producer.flush(2 * ANSWER_TIMEOUT_S)
    if failures and failures[0].name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"):
        raise ConfigError(f"no app {order.app} has run with queries on this queue: it has no topic {topic}")
    if failures:
        raise KafkaException(failures[0])
    if left:
        raise PenstockError(
            "the broker did not acknowledge the order, which may still be obeyed: look with 'penstock queries'"
        )


def _done(order: QueryOrder) -> str:
    return {
        Action.PAUSE: "paused",
        Action.RESUME: "resumed",
        Action.RESTART: "restarted",
        Action.START: "started" + (f" from {order.begin}" if order.begin in (BEGINNING, LATEST) else ""),
        Action.DROP: "dropped",
    }[order.action]


def _late(order: QueryOrder) -> str:
    return (
        f"{order.query}: the order is kept, and was not obeyed within {_WAIT_S:.0f} s: the app may be starting, "
        "or hang; look with 'penstock queries'"
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

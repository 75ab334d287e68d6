"""What the commands that talk to a broker share: its address, a connection, and errors in our words."""

from __future__ import annotations

import importlib
import os
import socket
import struct
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from penstock.client.factory import connect
from penstock.config.broker import BrokerConfig
from penstock.config.layers import ADDRESS_VARIABLE, client_address
from penstock.errors import ConfigError, PenstockError
from penstock.kafka.target import KafkaTarget

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient

ANSWER_TIMEOUT_S = 15.0
_REACH_TIMEOUT_S = 5.0
_SAY_TIMEOUT_S = 0.3  # a web server says at once that it does not understand
_WHICH_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)  # length, ApiVersions, version 0, the first question, nobody
_WRONG_REQUEST = ("INVALID_CONFIG", "INVALID_PARTITIONS", "INVALID_REPLICATION_FACTOR", "TOPIC_EXCEPTION")


def _target_to_use(context: click.Context, _: click.Parameter, given: str | None) -> KafkaTarget | None:
    if context.resilient_parsing:
        return None
    try:
        return KafkaTarget.parse(client_address(Path.cwd(), os.environ) if given is None else given)
    except ValueError as wrong:
        raise click.BadParameter(str(wrong)) from None


broker_option = click.option(
    "--broker",
    metavar="HOST:PORT",
    envvar=ADDRESS_VARIABLE,
    callback=_target_to_use,
    show_envvar=True,
    help="A broker, ours or Apache Kafka's; several with commas. Default: that of penstock.toml here, or "
    f"{BrokerConfig().listen}.",
)


class Patience:
    """How long a command waits for its broker, from now on, whatever it asks."""

    def __init__(self, within_s: float = ANSWER_TIMEOUT_S) -> None:
        self._within_s = within_s
        self._deadline_s = time.monotonic() + within_s

    @property
    def left_s(self) -> float:
        return max(0.0, self._deadline_s - time.monotonic())

    def lost(self) -> PenstockError:
        """The error for a broker that takes connections and says nothing."""
        return PenstockError(f"the broker did not answer within {self._within_s:g} s: try again")


class NoTopicError(PenstockError):
    """There is no topic of that name."""


class RefusedError(PenstockError):
    """The broker said no; `code` is Kafka's name of the reason."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code


def reach(broker: KafkaTarget) -> KafkaTarget:
    """The same brokers, once one of them was seen to listen."""
    refused = web = ""
    for host, port in broker.addresses:
        try:
            # The client library retries forever and reports nothing; a connection of our own fails at once.
            with connect(broker.at(host, port), _REACH_TIMEOUT_S) as connection:
                speaks_http = _speaks_http(connection)
        except OSError as error:
            refused = error.strerror or str(error)
        else:
            if speaks_http:
                web = (
                    f"{host}:{port} speaks HTTP, not Kafka's protocol: it may be the broker's port for metrics, or the "
                    "door of 'penstock run'; give that of --listen"
                )
                continue
            return broker
    if web:
        raise PenstockError(web)
    raise PenstockError(
        f"no broker answers at {broker} ({refused.lower()}): start one with 'penstock broker', or name another with "
        f"--broker or {ADDRESS_VARIABLE}"
    )


def _speaks_http(connection: socket.socket) -> bool:
    """Whether it answers Kafka's first question, which versions there are, as a web server does."""
    connection.settimeout(_SAY_TIMEOUT_S)
    try:
        connection.sendall(_WHICH_VERSIONS)
        return connection.recv(5) == b"HTTP/"
    except OSError:
        return False  # whoever says nothing, or hangs up, is told apart by the call that follows


def admin(broker: KafkaTarget) -> AdminClient:
    """A client for topics and their settings."""
    reached = reach(broker)
    from penstock.client.factory import admin_client

    return admin_client(reached)


def admin_module() -> Any:
    """confluent_kafka.admin, whose re-exported names carry no types."""
    return importlib.import_module("confluent_kafka.admin")


def answer(future: Future[Any], topic: str, patience: Patience | None = None) -> Any:
    """What the broker answered about `topic`; RefusedError with its reason."""
    from confluent_kafka import KafkaError, KafkaException

    patience = patience or Patience()
    try:
        return future.result(patience.left_s)
    except KafkaException as error:
        fault = error.args[0]
        if fault.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise no_topic(topic) from None
        if fault.name() in _WRONG_REQUEST:
            see = ": see 'penstock config explain'" if fault.name() == "INVALID_CONFIG" else ""
            raise ConfigError(f"{topic}: {broker_words(fault)}{see}") from None
        if fault.name() == "TOPIC_ALREADY_EXISTS":
            raise RefusedError(
                f"there is a topic {topic} already: --if-missing makes that fine", fault.name()
            ) from None
        raise RefusedError(f"{topic}: {reason(error)}", fault.name()) from None
    except TimeoutError:
        raise patience.lost() from None


def tell_deleted(answers: Mapping[str, Future[Any]], wait: Callable[[Future[Any], str, Patience], object]) -> None:
    """Name each that is deleted, as it is told; then fail for all that are not."""
    patience = Patience()
    faults: dict[str, PenstockError] = {}
    for name, future in answers.items():
        try:
            wait(future, name, patience)
        except PenstockError as fault:
            faults.setdefault(str(fault), fault)
        else:
            click.echo(f"deleted {name}")
    if faults:
        raise next(iter(faults.values())) if len(faults) == 1 else PenstockError("; ".join(faults))


def reason(error: KafkaException | KafkaError) -> str:
    """A failure of the client or the broker as a sentence that begins small."""
    from confluent_kafka import KafkaError, KafkaException

    fault: Any = error.args[0] if isinstance(error, KafkaException) and error.args else error
    code = fault.name() if hasattr(fault, "name") else ""
    text = broker_words(fault)
    if code in ("_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN", "_MSG_TIMED_OUT"):
        return f"the broker did not answer in time ({text}): look whether it runs and has room, then try again"
    if code == "KAFKA_STORAGE_ERROR":
        return (
            "the broker cannot read or write this partition's files: its log and /health say why, "
            "'penstock doctor --data DIR' says what can be done"
        )
    if code and not code.startswith("_") and text == broker_words(KafkaError(fault.code())):
        return f"{text} ({code})"  # the broker had no words of its own: Kafka's name can be looked up
    return text


def broker_words(fault: Any) -> str:
    """The text of a KafkaError, without its origin."""
    text = fault.str() if hasattr(fault, "str") else str(fault)
    return text.removeprefix("Local: ").removeprefix("Broker: ").rstrip(".")


def no_topic(name: str) -> NoTopicError:
    """The error for a topic that is not there."""
    return NoTopicError(f"there is no topic {name}: 'penstock topics list' shows what there is")


def setting_pairs(pairs: tuple[str, ...], option: str) -> dict[str, str]:
    """{'k': 'v'} from ('k=v',)."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE", param_hint=option)
        found[name] = value
    return found

"""`penstock produce`: records from lines, acknowledged before the command says so."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from penstock.cli.shared.broker_link import (
    ANSWER_TIMEOUT_S,
    NoTopicError,
    Patience,
    admin_module,
    answer,
    broker_option,
    reach,
    reason,
    setting_pairs,
)
from penstock.cli.shared.names import TOPIC
from penstock.cli.shared.output import count, json_option, print_json
from penstock.client.factory import producer_settings
from penstock.config.topic import TOPIC_SETTINGS
from penstock.errors import PenstockError
from penstock.kafka.records.batch import CODECS
from penstock.kafka.target import KafkaTarget

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, Message, Producer

_SIZE = "max.message.bytes"


class Target(NamedTuple):
    """A topic; without partitions while there is none of that name."""

    topic: str
    partitions: list[int]
    batch_bytes_max: int


def look_up(broker: KafkaTarget, topic: str, patience: Patience) -> Target:
    """What the broker says of `topic`, without creating it."""
    from confluent_kafka import TopicCollection

    from penstock.client.factory import admin_client

    client = admin_client(broker)
    try:
        found = answer(client.describe_topics(TopicCollection([topic]))[topic], topic, patience)
    except NoTopicError:
        return Target(topic, [], int(TOPIC_SETTINGS[_SIZE].default))
    kinds = admin_module()
    resource = kinds.ConfigResource(kinds.ResourceType.TOPIC, topic)
    entries = answer(client.describe_configs([resource])[resource], topic, patience)
    return Target(topic, sorted(partition.id for partition in found.partitions), int(entries[_SIZE].value))


_HELD_MAX = 10_000  # failures that wait to be told together
_HELD_S = 1.0


class InputRecord(NamedTuple):
    """One record as it was given, its number, and why it cannot be sent."""

    number: int
    key: bytes | None
    value: bytes
    fault: str | None = None


class Failures:
    """Which records were not acknowledged, and why; those that follow each other are told in one line."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._numbers: dict[str, list[int]] = {}
        self._held = 0
        self._since_s = 0.0

    def add(self, number: int, why: str, now_s: float) -> None:
        if not self._held:
            self._since_s = now_s
        self._numbers.setdefault(why, []).append(number)
        self._held += 1

    def tell_due(self, now_s: float) -> None:
        """Name them if they are many, or have waited for others for long enough."""
        if self._held >= _HELD_MAX or (self._held and now_s - self._since_s >= _HELD_S):
            self.tell()

    def tell(self) -> None:
        """Name all that were not named yet."""
        for why, numbers in self._numbers.items():
            for first, last in stretches(numbers):
                named = f"{self._noun} {first} was" if first == last else f"{self._noun}s {first} to {last} were"
                click.echo(f"penstock: {named} not acknowledged: {why}.", err=True)
        self._numbers.clear()
        self._held = 0


def stretches(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """The first and the last of those that follow each other without a gap, in order."""
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


class Tally:
    """What became of the records."""

    def __init__(self, target: Target, failures: Failures, as_json: bool) -> None:
        self._target = target
        self.failures = failures
        self.acknowledged = 0
        self.failed = 0
        self._as_json = as_json

    def on_delivery(self, number: int, fault: KafkaError | None, message: Message) -> None:
        if fault is not None:
            self.refuse(number, fault, len(message.value() or b"") + len(message.key() or b""))
            return
        self.acknowledged += 1
        if self._as_json:
            told = {"topic": message.topic(), "partition": message.partition(), "offset": message.offset()}
            print_json(told, compact=True)

    def refuse(self, number: int, fault: KafkaError, size: int) -> None:
        if fault.name() == "MSG_SIZE_TOO_LARGE":
            most = f"max.message.bytes of {self._target.topic} is {self._target.batch_bytes_max}"
            self.fail(number, f"it has {size} bytes, and {most}")
        elif fault.name() == "_MSG_TIMED_OUT":
            self.fail(
                number,
                "the broker did not answer in time, or cannot store it, which its log and /health would say: it may be "
                "stored all the same, look before you send it again",
            )
        else:
            self.fail(number, reason(fault))

    def fail(self, number: int, why: str) -> None:
        self.failed += 1
        self.failures.add(number, why, time.monotonic())


@click.command("produce")
@click.argument("topic", type=TOPIC)
@click.option("--value", "values", multiple=True, metavar="TEXT", help="A record, instead of lines; repeat for more.")
@click.option("--key", metavar="TEXT", help="The key of every record.")
@click.option("--key-separator", metavar="TEXT", help="What stands between key and value in each line.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="A header of every record.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Write to this partition only.")
@click.option("--compression", type=click.Choice(CODECS), default="none", show_default=True)
@click.option(
    "--acks",
    type=click.Choice(["all", "1", "0"]),
    default="all",
    show_default=True,
    help="all: each record once and in order; 1 and 0 give that up.",
)
@click.option("--timeout", type=click.FloatRange(min=0.1), default=30.0, metavar="SECONDS", show_default=True,
              help="Give a record up after this long, and a broker that says nothing at all.")  # fmt: skip
@json_option
@broker_option
def command(
    topic: str, values: tuple[str, ...], key: str | None, key_separator: str | None, headers: tuple[str, ...],
    partition: int | None, compression: str, acks: str, timeout: float, as_json: bool, broker: KafkaTarget,
) -> int:  # fmt: skip
    """Write records to TOPIC, one for each line of standard input.

    Says on standard error how many were acknowledged; with --json also prints where each one stands.
    """
    if key is not None and key_separator is not None:
        raise click.UsageError("--key and --key-separator exclude each other")
    if key_separator == "":
        raise click.BadParameter("it cannot be empty", param_hint="--key-separator")
    fixed: dict[str, Any] = {"headers": [(n, v.encode()) for n, v in setting_pairs(headers, "--header").items()]}
    if partition is not None:
        fixed["partition"] = partition
    target = look_up(reach(broker), topic, Patience(min(timeout, ANSWER_TIMEOUT_S)))
    if partition is not None and target.partitions and partition not in target.partitions:
        raise PenstockError(f"{topic} has no partition {partition}, only 0 to {len(target.partitions) - 1}")
    settings = producer_settings(broker) | {
        "acks": acks,
        "enable.idempotence": acks == "all",
        "compression.type": compression,
        "message.timeout.ms": int(timeout * 1000),
        "message.max.bytes": max(1000, min(target.batch_bytes_max, 1_000_000_000)),  # what the library allows
        "batch.size": max(1, min(target.batch_bytes_max, 1_000_000)),
        "allow.auto.create.topics": True,  # as Kafka's console producer; the command reports a topic that it created
    }
    from confluent_kafka import Producer

    tally = Tally(target, Failures("value" if values else "line"), as_json)
    producer = Producer(settings)
    try:
        try:
            _send(producer, topic, given_records(values, key, key_separator), fixed, tally)
        except KeyboardInterrupt:
            click.echo("penstock: interrupted; waiting for what was sent.", err=True)
        producer.flush()
    finally:
        tally.failures.tell()
    if not target.partitions and (created := _partitions_now(broker, topic)):
        click.echo(f"created {topic} with {count(created, 'partition')}: there was no such topic", err=True)
    told = f"{tally.acknowledged} {'acknowledged' if acks != '0' else 'sent, acknowledged by nobody'}"
    click.echo(told + (f", {tally.failed} failed" if tally.failed else ""), err=True)
    return 1 if tally.failed else 0


def _partitions_now(broker: KafkaTarget, topic: str) -> int:
    """0 if the broker has gone meanwhile: what became of the records is told all the same."""
    try:
        return len(look_up(reach(broker), topic, Patience()).partitions)
    except PenstockError:
        return 0


def given_records(values: tuple[str, ...], key: str | None, separator: str | None) -> Iterator[InputRecord]:
    """The records from --value or standard input."""
    lines: Iterator[bytes] = iter([value.encode() for value in values]) if values else _lines()
    shared = None if key is None else key.encode()
    for number, line in enumerate(lines, start=1):
        if separator is None:
            yield InputRecord(number, shared, line)
            continue
        own, found, value = line.partition(separator.encode())
        yield InputRecord(number, own, value, None if found else f"it has no {separator!r} between key and value")


def _lines() -> Iterator[bytes]:
    for line in sys.stdin.buffer:
        yield line[:-1] if line.endswith(b"\n") else line


def _send(producer: Producer, topic: str, records: Iterator[InputRecord], fixed: dict[str, Any], tally: Tally) -> None:
    from confluent_kafka import KafkaException

    for number, key, value, fault in records:
        if fault is not None:
            tally.fail(number, fault)
            tally.failures.tell_due(time.monotonic())
            continue
        on_delivery = partial(tally.on_delivery, number)
        while True:
            try:
                producer.produce(topic, value, key, on_delivery=on_delivery, **fixed)
            except BufferError:
                producer.poll(1)  # the queue of the client is full: let some of it leave
                continue
            except KafkaException as error:
                tally.refuse(number, error.args[0], len(value) + len(key or b""))
            break
        producer.poll(0)
        tally.failures.tell_due(time.monotonic())

"""`penstock tap`: watch topics live in the terminal."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.shared.broker_link import ANSWER_TIMEOUT_S, broker_option, no_topic, reach, reason
from penstock.cli.shared.names import TOPIC
from penstock.cli.shared.output import count, json_option, print_json
from penstock.cli.shared.record_text import Lines, as_json
from penstock.cli.shared.start_offsets import ranges, start_option
from penstock.client.factory import client_settings
from penstock.client.record import Record, record_of
from penstock.client.start_words import END
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError

_WAIT_S = 0.1
_LOOK_S = 1.0  # how soon a new topic or partition is seen
_BATCH_MAX = 500
_OWN = "penstock."


@click.command("tap")
@click.argument("topics", type=TOPIC, metavar="TOPIC|PATTERN")
@start_option("--from", default=END)
@click.option("--max", "records_max", type=click.IntRange(min=1), metavar="N", help="Stop after so many records.")
@click.option("--full", is_flag=True, help="Print whole values, however long; else a line is as wide as the terminal.")
@json_option
@broker_option
def command(
    topics: str, begin: str | int | datetime, records_max: int | None, full: bool, as_json: bool, broker: KafkaTarget
) -> None:
    """Watch TOPIC, or all topics of a PATTERN such as 'orders*', as records come, until Ctrl-C.

    A line has time, topic and partition, key, and value. Topics made later are watched too if they match. Penstock's
    own topics are watched if they are named: 'penstock.*'.
    """
    settings = client_settings(reach(broker)) | {
        "group.id": "penstock-tap",  # the library wants one; partitions are assigned, nothing is committed
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": 100,
        "error_cb": _tell_outage,
    }
    from confluent_kafka import Consumer

    consumer = Consumer(settings)
    stop = _stop_on_signals()
    show = _printer(full, as_json)
    try:
        watch = Watch(consumer, topics, begin)
        for shown, record in enumerate(watch.records(stop), 1):
            show(record)
            if shown == records_max:
                break
    finally:
        consumer.close()


class Watch:
    """Reads every partition of the topics that match, also of those that come later."""

    def __init__(self, consumer: Consumer, pattern: str, begin: str | int | datetime) -> None:
        self._consumer: Any = consumer
        self._pattern = pattern
        self._wanted = re.compile(".*".join(map(re.escape, pattern.split("*"))))
        self._read: dict[str, set[int]] = {}
        for topic, partitions in sorted(self._matching().items()):
            self._assign(topic, {each.partition: each.start for each in ranges(consumer, topic, partitions, begin)})
        if not self._read:
            if "*" not in pattern:
                raise no_topic(pattern)
            click.echo(f"penstock: no topic matches {pattern} yet; waiting for one.", err=True)
        elif "*" in pattern:
            click.echo(f"penstock: watching {count(len(self._read), 'topic')}: {', '.join(self._read)}.", err=True)

    def records(self, stop: Callable[[], bool]) -> Iterator[Record]:
        """What is written, until `stop` says so."""
        look_at = time.monotonic() + _LOOK_S
        while not stop():
            if time.monotonic() >= look_at:
                self._look()
                look_at = time.monotonic() + _LOOK_S
            first = self._consumer.poll(_WAIT_S)
            if first is None:
                continue
            for message in [first, *self._consumer.consume(_BATCH_MAX, 0)]:
                if message.error() is None:
                    yield record_of(message)
                elif message.error().name() == "_AUTO_OFFSET_RESET":
                    self._begin_again(message.topic(), message.partition())
                elif message.error().name() != "UNKNOWN_TOPIC_OR_PART":
                    where = f"partition {message.partition()} of {message.topic()}"
                    raise PenstockError(f"reading {where} failed: {reason(message.error())}")
            sys.stdout.flush()

    def _matching(self) -> dict[str, list[int]]:
        if "*" not in self._pattern:
            found = self._consumer.list_topics(self._pattern, timeout=ANSWER_TIMEOUT_S).topics
        else:
            found = self._consumer.list_topics(timeout=ANSWER_TIMEOUT_S).topics
        return {
            name: sorted(topic.partitions)
            for name, topic in found.items()
            if topic.error is None
            and self._wanted.fullmatch(name)
            and (not name.startswith(_OWN) or self._pattern.startswith(_OWN))
        }

    def _look(self) -> None:
        from confluent_kafka import KafkaException

        try:
            found = self._matching()
        except KafkaException:
            return  # an outage: what is assigned goes on by itself
        for topic, partitions in sorted(found.items()):
            if topic not in self._read:
                click.echo(f"penstock: {topic} is new; watching it, too.", err=True)
            self._assign(topic, dict.fromkeys(set(partitions) - self._read.get(topic, set()), 0))

    def _assign(self, topic: str, starts: dict[int, int]) -> None:
        from confluent_kafka import TopicPartition

        self._read.setdefault(topic, set()).update(starts)
        if starts:
            self._consumer.incremental_assign([TopicPartition(topic, *start) for start in sorted(starts.items())])

    def _begin_again(self, topic: str, partition: int) -> None:
        from confluent_kafka import OFFSET_BEGINNING, TopicPartition

        click.echo(f"penstock: partition {partition} of {topic} begins anew: what stood there is gone.", err=True)
        self._consumer.incremental_unassign([TopicPartition(topic, partition)])
        self._consumer.incremental_assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])


def _printer(full: bool, in_json: bool) -> Callable[[Record], None]:
    if in_json:
        return lambda record: print_json(as_json(record), compact=True)
    is_terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if is_terminal and not full else None
    lines = Lines(width, coloured=is_terminal and not os.environ.get("NO_COLOR"))

    def show(record: Record) -> None:
        sys.stdout.write(lines.line(record) + "\n")

    return show


def _stop_on_signals() -> Callable[[], bool]:
    stopped: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda which, _: stopped.append(which))
    return lambda: bool(stopped)


def _tell_outage(error: KafkaError) -> None:
    if error.name() == "_ALL_BROKERS_DOWN":
        click.echo("penstock: no broker answers; waiting until one does.", err=True)

"""`penstock consume`: prints records as they become readable."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.shared.broker_link import ANSWER_TIMEOUT_S, admin, broker_option, reach, reason
from penstock.cli.shared.group_offsets import FULL, no_room
from penstock.cli.shared.names import GROUP, TOPIC
from penstock.cli.shared.output import json_option, print_json
from penstock.cli.shared.record_text import SHOWN, as_json, as_line
from penstock.cli.shared.start_offsets import Range, partitions_of, ranges, start_option
from penstock.client.factory import client_settings
from penstock.client.offsets import offset_range
from penstock.client.record import Record, record_of
from penstock.client.start_words import BEGINNING, END
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget

if TYPE_CHECKING:
    from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

_WAIT_S = 0.2  # how long an interruption may wait for the client library


@click.command("consume")
@click.argument("topic", type=TOPIC)
@start_option("--from", default=BEGINNING)
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Read this partition only.")
@click.option(
    "--group",
    type=GROUP,
    metavar="NAME",
    help="Share the records with the other members of this group, and go on where it was; then --from says where a "
    "group without a position begins: beginning (or earliest), end (or latest, now).",
)
@click.option("--max", "records_max", type=click.IntRange(min=1), metavar="N", help="Stop after so many records.")
@click.option("--until-end", is_flag=True, help="Stop at what was the end when the command began.")
@click.option("--show", default="", metavar="NAMES", help=f"Also print these, with commas: {', '.join(SHOWN)}.")
@click.option(
    "--skip-damaged", is_flag=True, help="Go on behind damaged records, and tell which; then the exit status is 1."
)
@json_option
@broker_option
def command(
    topic: str,
    begin: str | int | datetime,
    partition: int | None,
    group: str | None,
    records_max: int | None,
    until_end: bool,
    show: str,
    skip_damaged: bool,
    as_json: bool,
    broker: KafkaTarget,
) -> int:
    """Print the records of TOPIC, one a line, until Ctrl-C.

    Bytes that are not printable text are shown escaped. With --json each line is a whole record, and a key or value
    that is not UTF-8 stands there as {"base64": "..."}.
    """
    shown = _columns(show)
    if shown and as_json:
        raise click.UsageError("--json prints whole records: leave out --show")
    if group is not None and (partition is not None or begin not in (BEGINNING, END)):
        raise click.UsageError("with --group there is no --partition, and --from is a word such as beginning or end")
    settings = client_settings(reach(broker)) | {
        # The library wants a group; without one of its own, partitions are assigned and nothing is committed.
        "group.id": "penstock-consume" if group is None else group,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error" if group is None else ("earliest" if begin == BEGINNING else "latest"),
        "error_cb": _tell_outage,
    }
    from confluent_kafka import Consumer

    consumer = Consumer(settings)
    stop = _stop_on_signals()
    skipped: list[Range] = []
    on_damage = partial(_skip, settings, topic, skipped) if skip_damaged else partial(_give_up, topic)
    try:
        if group is not None:
            if not topic.startswith("^"):  # else it is a pattern, and may fit nothing yet
                partitions_of(consumer, topic, None)
            sharer = Sharer(consumer, topic, _WAIT_S, lambda: no_room(admin(broker), group))
            for message in sharer.records(until_end, stop, records_max, on_damage):
                _print(record_of(message), shown, as_json)
            return 1 if skipped else 0
        parts = ranges(consumer, topic, partitions_of(consumer, topic, partition), begin)
        for record in _records(consumer, topic, parts, until_end, stop, records_max, on_damage):
            _print(record, shown, as_json)
    finally:
        consumer.close()
    return 1 if skipped else 0


def _print(record: Record, shown: list[str], in_json: bool) -> None:
    if in_json:
        print_json(as_json(record), compact=True)
    else:
        sys.stdout.write(as_line(record, shown) + "\n")


def _columns(show: str) -> list[str]:
    names = [name.strip() for name in show.split(",") if name.strip()]
    for name in names:
        if name not in SHOWN:
            raise click.BadParameter(f"{name!r} is none of {', '.join(SHOWN)}", param_hint="--show")
    return names


def _stop_on_signals() -> Callable[[], bool]:
    stopped: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda which, _: stopped.append(which))
    return lambda: bool(stopped)


def _records(
    consumer: Consumer,
    topic: str,
    parts: list[Range],
    until_end: bool,
    stop: Callable[[], bool],
    limit: int | None,
    on_damage: Callable[[int, int], int],
) -> Iterator[Record]:
    from confluent_kafka import TopicPartition

    ends = {part.partition: part.end for part in parts if not until_end or part.start < part.end}
    consumer.assign([TopicPartition(topic, part.partition, part.start) for part in parts if part.partition in ends])
    given = 0
    while ends and not stop() and (limit is None or given < limit):
        message = consumer.poll(0)
        if message is None:
            sys.stdout.flush()  # nothing waits: whoever reads along sees everything so far
            message = consumer.poll(_WAIT_S)
        if message is None:
            continue
        partition, offset = int(message.partition() or 0), int(message.offset() or 0)
        if (error := message.error()) is not None:
            if error.name() in DAMAGED:
                behind = on_damage(partition, offset)
                consumer.seek(TopicPartition(topic, partition, behind))
                if until_end and behind >= ends.get(partition, 0):
                    ends.pop(partition, None)
                continue
            if error.name() != "_PARTITION_EOF":
                raise PenstockError(f"reading partition {partition} of {topic} failed: {reason(error)}")
            if until_end:
                ends.pop(partition, None)
            continue
        if until_end and offset >= ends.get(partition, 0):
            ends.pop(partition, None)
            continue
        yield record_of(message)
        given += 1
        if until_end and offset + 1 >= ends[partition]:
            ends.pop(partition)


def _give_up(topic: str, partition: int, offset: int) -> int:
    raise PenstockError(
        f"the record at offset {offset} of partition {partition} of {topic} is damaged: 'penstock doctor --data DIR' "
        "names where to read on, as in --from OFFSET; --skip-damaged finds it by trying"
    )


def _skip(settings: dict[str, Any], topic: str, skipped: list[Range], partition: int, offset: int) -> int:
    sys.stdout.flush()
    behind = next_readable(settings, topic, partition, offset)
    skipped.append(Range(partition, offset, behind))
    click.echo(f"penstock: skipped offsets {offset} to {behind - 1} of partition {partition}: damaged.", err=True)
    return behind


def _tell_outage(error: KafkaError) -> None:
    if error.name() == "_ALL_BROKERS_DOWN":
        click.echo("penstock: no broker answers; waiting until one does.", err=True)


DAMAGED = ("INVALID_MSG", "_BAD_MSG")
_TRIED_EACH = 32  # whole records between two damaged ones are found so far; behind, a short run may be passed over


def next_readable(settings: dict[str, Any], topic: str, partition: int, damaged: int) -> int:
    """An offset behind `damaged` that can be read while the one before it cannot; the end if there is none."""
    from confluent_kafka import Consumer

    # What was read ahead is thrown away by every try.
    probe = Consumer(settings | {"fetch.error.backoff.ms": 0, "fetch.max.bytes": 1 << 20, "queued.min.messages": 1})
    try:
        _, end = offset_range(probe, topic, partition, ANSWER_TIMEOUT_S)
        bad, step = damaged, 1
        while (good := min(bad + step, end)) < end and not _is_readable(probe, topic, partition, good):
            bad, step = good, 1 if good - damaged < _TRIED_EACH else step * 2
        while good - bad > 1:
            middle = (bad + good) // 2
            if _is_readable(probe, topic, partition, middle):
                good = middle
            else:
                bad = middle
        return good
    finally:
        probe.close()


def _is_readable(probe: Consumer, topic: str, partition: int, offset: int) -> bool:
    from confluent_kafka import TopicPartition

    probe.assign([TopicPartition(topic, partition, offset)])
    message = probe.poll(ANSWER_TIMEOUT_S)
    if message is None:
        raise PenstockError(f"the broker did not answer within {ANSWER_TIMEOUT_S:.0f} s: try again")
    error = message.error()
    if error is None or error.name() == "_PARTITION_EOF":
        return True
    if error.name() in DAMAGED:
        return False
    raise PenstockError(f"reading partition {partition} of {topic} failed: {reason(error)}")


class Sharer:
    """What this member has, where each of its partitions ended, and what was shown since the last commit."""

    def __init__(self, consumer: Consumer, topic: str, wait_s: float, on_full: Callable[[], PenstockError]) -> None:
        """`on_full` says why a broker has no room for this member."""
        self._consumer = consumer
        self._topic = topic
        self._wait_s = wait_s
        self._on_full = on_full
        self._mine: dict[tuple[str, int], bool] = {}  # whether its end was seen
        self._shown: dict[tuple[str, int], int] = {}

    def records(
        self, until_end: bool, stop: Callable[[], bool], limit: int | None, on_damage: Callable[[int, int], int]
    ) -> Iterator[Message]:
        """Records until told to stop; positions are committed when there is nothing to show, and at the end."""
        self._consumer.subscribe(
            [self._topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )
        given = 0
        while not stop() and (limit is None or given < limit):
            if until_end and self._mine and all(self._mine.values()):
                break
            message = self._consumer.poll(0)
            if message is None:
                self._commit()
                message = self._consumer.poll(self._wait_s)
            if message is not None and (given_one := self._take(message, on_damage)) is not None:
                yield given_one
                given += 1
                self._shown[_place(given_one)] = int(given_one.offset() or 0) + 1
        self._commit()

    def _take(self, message: Message, on_damage: Callable[[int, int], int]) -> Message | None:
        from confluent_kafka import TopicPartition

        error = message.error()
        if error is None:
            self._mine[_place(message)] = False
            return message
        if error.name() in DAMAGED:
            topic, partition = _place(message)
            self._consumer.seek(TopicPartition(topic, partition, on_damage(partition, int(message.offset() or 0))))
        elif error.name() == "_PARTITION_EOF":
            self._mine[_place(message)] = True
        elif error.name() == FULL:
            raise self._on_full()
        elif not error.retriable():
            raise PenstockError(f"reading {self._topic} in a group failed: {reason(error)}")
        return None

    def _commit(self) -> None:
        from confluent_kafka import KafkaException, TopicPartition

        sys.stdout.flush()  # a position says that its records were seen
        places = [TopicPartition(*place, offset) for place, offset in self._shown.items()]
        self._shown.clear()
        if places:
            try:
                self._consumer.commit(offsets=places, asynchronous=False)
            except KafkaException as error:
                # Another member has the partition by now, and shows these records again.
                if error.args[0].name() not in ("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS"):
                    raise

    def _on_assign(self, _: Any, places: list[TopicPartition]) -> None:
        self._mine |= {(place.topic, place.partition): False for place in places}

    def _on_revoke(self, _: Any, places: list[TopicPartition]) -> None:
        self._commit()
        self._on_lost(_, places)

    def _on_lost(self, _: Any, places: list[TopicPartition]) -> None:
        for place in places:
            self._mine.pop((place.topic, place.partition), None)
            self._shown.pop((place.topic, place.partition), None)


def _place(message: Message) -> tuple[str, int]:
    return str(message.topic()), int(message.partition() or 0)

"""`penstock groups`: list, describe, reset and delete consumer groups."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from penstock.cli.shared.broker_link import ANSWER_TIMEOUT_S, admin, broker_option, reach, tell_deleted
from penstock.cli.shared.group_offsets import (
    NoGroupError,
    describe_group,
    group_answer,
    group_fault,
    has_members,
    no_group,
    positions,
    short_ids,
    standings,
)
from penstock.cli.shared.names import GROUP, TOPIC
from penstock.cli.shared.output import ask, count, json_option, print_each, print_facts, print_rows, print_table
from penstock.cli.shared.start_offsets import Range, partitions_of, ranges, start_option
from penstock.client.factory import client_settings
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget

_WHOLE = "--to earliest or --to latest"
_COLUMNS = ("topic", "partition", "committed", "start", "end", "lag", "member")
names_argument = click.argument("names", type=GROUP, nargs=-1, required=True, metavar="GROUP...")


@click.group("groups")
def command() -> None:
    """List, describe, reset and delete consumer groups."""


@command.command("list")
@broker_option
@json_option
def list_groups(broker: KafkaTarget, as_json: bool) -> None:
    """List the groups."""
    client = admin(broker)  # the answer does not come to a client that is gone
    found = client.list_consumer_groups(request_timeout=ANSWER_TIMEOUT_S).result(ANSWER_TIMEOUT_S)
    if found.errors:
        raise PenstockError(f"the broker did not list its groups: {found.errors[0]}")
    rows = sorted((group.group_id, _word(group.state), _word(group.type)) for group in found.valid)
    print_rows(("group", "state", "type"), rows, as_json, "there are no groups")


def _word(value: Any) -> str:
    return str(value.name).lower().replace("_", " ")


@command.command("describe")
@names_argument
@broker_option
@json_option
def describe(names: tuple[str, ...], broker: KafkaTarget, as_json: bool) -> None:
    """Show members, positions, and how many records each partition has in front of the group.

    Where the group has no position there is no lag, as in Kafka's tool; what is there is counted apart. Where only
    markers of transactions are left, or records of aborted ones, the lag is 0, unlike in Kafka's tool.
    """
    client = admin(broker)
    found, missing = [], []
    for name in names:
        try:
            found.append(_described(client, broker, name))
        except NoGroupError as fault:
            missing.append(fault)
    if found:
        print_each(found, as_json, _show)
    if missing:
        raise missing[0] if len(missing) == 1 else PenstockError("; ".join(map(str, missing)))


def _show(group: dict[str, Any]) -> None:
    facts = [("group", group["group"]), ("state", group["state"]), ("assignor", group["assignor"])]
    lag = str(group["lag"])
    if group["never_read"]:
        lag += f", and {count(group['never_read'], 'record')} where the group has no position yet"
    print_facts([*facts, ("members", len(group["members"])), ("lag", lag)])
    short = short_ids([member["id"] for member in group["members"]]) | {"": ""}
    parts = [part | {"member": short[part["member"]]} for part in group["partitions"]]
    rows = [["-" if part[column] is None else part[column] for column in _COLUMNS] for part in parts]
    if rows:
        print_table([column.upper() for column in _COLUMNS], rows)


def _described(client: Any, broker: KafkaTarget, name: str) -> dict[str, Any]:
    found = describe_group(client, name)
    parts = standings(client, broker, name, found.members)
    return {
        "group": name,
        "state": _word(found.state),
        "assignor": found.partition_assignor or "",
        "members": [
            {"id": m.member_id, "client": m.client_id, "host": m.host, "instance": m.group_instance_id}
            for m in found.members
        ],
        "lag": sum(part.lag or 0 for part in parts),
        "never_read": sum(part.never_read for part in parts),
        "partitions": [{column: getattr(part, column) for column in _COLUMNS} for part in parts],
    }


@command.command("reset")
@click.argument("group", type=GROUP)
@start_option("--to")
@click.option(
    "--topic", type=TOPIC, metavar="NAME", help="In this topic only; default: all that the group has positions in."
)
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="In this partition of --topic only.")
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@broker_option
@json_option
def reset(
    group: str,
    begin: str | int | datetime,
    topic: str | None,
    partition: int | None,
    dry_run: bool,
    broker: KafkaTarget,
    as_json: bool,
) -> None:
    """Move the positions of GROUP, which must have no members; what it reads next begins there."""
    if partition is not None and topic is None:
        raise click.UsageError("--partition needs --topic")
    client = admin(broker)
    before = positions(client, group)
    is_there = _is_there(client, group) or bool(before)
    topics = [topic] if topic is not None else sorted({name for name, _ in before})
    if not topics:
        raise PenstockError(f"{group} has no positions yet: name a topic with --topic") if is_there else no_group(group)
    after = _plan(broker, topics, partition, begin)
    if not dry_run:
        _move(client, group, after)
    rows = [
        (name, part.partition, before.get((name, part.partition)), part.start)
        for name, parts in after.items()
        for part in parts
    ]
    print_rows(("topic", "partition", "from", "to"), rows, as_json, f"{group} has no partitions to move in")
    if not is_there:
        would = "would begin" if dry_run else "begins"
        click.echo(f"there was no group {group}: it {would} with these positions", err=True)


def _is_there(client: Any, group: str) -> bool:
    """Whether there is such a group; PenstockError if it has members, which would not hear of new positions."""
    try:
        found = describe_group(client, group)
    except NoGroupError:
        return False
    if found.members:
        raise has_members(group)
    return True


def _plan(broker: KafkaTarget, topics: list[str], partition: int | None, begin: Any) -> dict[str, list[Range]]:
    from confluent_kafka import Consumer

    consumer = Consumer(client_settings(reach(broker)) | {"group.id": "penstock-groups", "enable.auto.commit": False})
    try:
        return {
            name: ranges(consumer, name, partitions_of(consumer, name, partition), begin, _WHOLE) for name in topics
        }
    finally:
        consumer.close()


def _move(client: Any, group: str, after: dict[str, list[Range]]) -> None:
    from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

    places = [TopicPartition(name, part.partition, part.start) for name, parts in after.items() for part in parts]
    request = ConsumerGroupTopicPartitions(group, places)
    moved = group_answer(client.alter_consumer_group_offsets([request])[group], group)
    refused = [place.error for place in moved.topic_partitions if place.error is not None]
    if refused:
        raise group_fault(refused[0], group)


@command.command("delete")
@names_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@broker_option
def delete(names: tuple[str, ...], yes: bool, broker: KafkaTarget) -> None:
    """Forget groups with their positions; they must have no members."""
    client = admin(broker)
    if not yes:
        ask(f"Forget the positions of {', '.join(names)}?")
    tell_deleted(client.delete_consumer_groups(list(names)), group_answer)

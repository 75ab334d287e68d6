"""`penstock topics`: list, create, describe, alter and delete topics."""

from __future__ import annotations

from typing import Any

import click

from penstock.cli.shared.broker_link import (
    ANSWER_TIMEOUT_S,
    RefusedError,
    admin,
    admin_module,
    answer,
    broker_option,
    setting_pairs,
    tell_deleted,
)
from penstock.cli.shared.names import TOPIC
from penstock.cli.shared.output import ask, count, json_option, print_each, print_facts, print_rows, print_table
from penstock.kafka.target import KafkaTarget

PARTITIONS_MAX, REPLICAS_MAX = 100_000, 10_000  # what the client library can ask for

partitions_option = click.option(
    "--partitions", type=click.IntRange(1, PARTITIONS_MAX), metavar="N", help="How many partitions."
)
config_option = click.option("--config", multiple=True, metavar="NAME=VALUE", help="A topic setting; repeat for more.")
names_argument = click.argument("names", type=TOPIC, nargs=-1, required=True, metavar="NAME...")


@click.group("topics")
def command() -> None:
    """List, create, describe, alter and delete topics."""


@command.command("list")
@broker_option
@json_option
def list_topics(broker: KafkaTarget, as_json: bool) -> None:
    """List the topics."""
    found = admin(broker).list_topics(timeout=ANSWER_TIMEOUT_S).topics
    rows = sorted((name, len(topic.partitions)) for name, topic in found.items())
    print_rows(("name", "partitions"), rows, as_json, "there are no topics")


@command.command("create")
@click.argument("name", type=TOPIC)
@partitions_option
@click.option(
    "--replicas", type=click.IntRange(1, REPLICAS_MAX), metavar="N", help="Copies of each partition, on a cluster."
)
@config_option
@click.option("--if-missing", is_flag=True, help="Fine when the topic is there already.")
@broker_option
def create(
    name: str,
    partitions: int | None,
    replicas: int | None,
    config: tuple[str, ...],
    if_missing: bool,
    broker: KafkaTarget,
) -> None:
    """Create a topic; what is not given is the broker's default."""
    settings = setting_pairs(config, "--config")
    client = admin(broker)
    topic = admin_module().NewTopic(
        name, num_partitions=partitions or -1, replication_factor=replicas or -1, config=settings
    )
    try:
        answer(client.create_topics([topic], operation_timeout=ANSWER_TIMEOUT_S)[name], name)
    except RefusedError as refused:
        if not if_missing or refused.code != "TOPIC_ALREADY_EXISTS":
            raise
        there = len(client.list_topics(name, timeout=ANSWER_TIMEOUT_S).topics[name].partitions) if partitions else 0
        differs = there not in (0, partitions)  # 0: deleted meanwhile
        click.echo(f"{name} is there already" + (f", with {count(there, 'partition')}" if differs else ""))
    else:
        click.echo(f"created {name}")


@command.command("describe")
@names_argument
@broker_option
@json_option
def describe(names: tuple[str, ...], broker: KafkaTarget, as_json: bool) -> None:
    """Show id, partitions, offsets, and the settings that are not at their default."""
    from penstock.cli.topic_description import describe_topic

    client = admin(broker)
    print_each([describe_topic(client, name) for name in names], as_json, _show)


def _show(topic: dict[str, Any]) -> None:
    facts = [("topic", topic["name"]), ("id", topic["id"])]
    print_facts(facts + [("setting", f"{name}={value}") for name, value in topic["settings"].items()])
    columns = ("partition", "leader", "start", "end")
    print_table([name.upper() for name in columns], [[p[c] for c in columns] for p in topic["partitions"]])


@command.command("alter")
@click.argument("name", type=TOPIC)
@partitions_option
@config_option
@click.option("--unset", multiple=True, metavar="NAME", help="Back to the default; repeat for more.")
@broker_option
def alter(
    name: str, partitions: int | None, config: tuple[str, ...], unset: tuple[str, ...], broker: KafkaTarget
) -> None:
    """Change settings of a topic, or give it more partitions."""
    settings = setting_pairs(config, "--config")
    if partitions is None and not settings and not unset:
        raise click.UsageError("say what to change: --partitions, --config or --unset")
    client = admin(broker)
    kinds = admin_module()
    if settings or unset:
        put, drop = kinds.AlterConfigOpType.SET, kinds.AlterConfigOpType.DELETE
        entries = [kinds.ConfigEntry(key, value, incremental_operation=put) for key, value in settings.items()]
        entries += [kinds.ConfigEntry(key, None, incremental_operation=drop) for key in unset]
        resource = kinds.ConfigResource(kinds.ResourceType.TOPIC, name, incremental_configs=entries)
        answer(client.incremental_alter_configs([resource])[resource], name)
        click.echo(f"changed {count(len(entries), 'setting')} of {name}")
    if partitions is not None:
        more = kinds.NewPartitions(name, partitions)
        answer(client.create_partitions([more], operation_timeout=ANSWER_TIMEOUT_S)[name], name)
        click.echo(f"{name} has {count(partitions, 'partition')} now")


@command.command("delete")
@names_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@broker_option
def delete(names: tuple[str, ...], yes: bool, broker: KafkaTarget) -> None:
    """Delete topics and all their records, for good."""
    client = admin(broker)
    if not yes:
        ask(f"Delete {', '.join(names)} and all records in there?")
    tell_deleted(client.delete_topics(list(names), operation_timeout=ANSWER_TIMEOUT_S), answer)

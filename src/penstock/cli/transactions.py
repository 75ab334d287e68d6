"""`penstock transactions`: list, describe and abort transactions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.shared.broker_link import broker_option, no_topic, reach
from penstock.cli.shared.names import TOPIC, TRANSACTIONAL_ID
from penstock.cli.shared.output import json_option, print_each, print_facts, print_rows
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget

if TYPE_CHECKING:
    from penstock.client.transactions import Ending, OpenTransaction
    from penstock.kafka.wire.messages.describe_transactions import DescribedTransaction

_STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
_ENDING = ("PrepareCommit", "PrepareAbort")
_COLUMNS = ("topic", "partition", "id", "producer", "epoch", "first_offset", "silent_s")


@click.group("transactions")
def command() -> None:
    """List, describe and abort transactions."""


@command.command("list")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(_STATES, case_sensitive=False),
    help="Only those in this state; repeat for more.",
)  # fmt: skip
@broker_option
@json_option
def list_all(states: tuple[str, ...], broker: KafkaTarget, as_json: bool) -> None:
    """List the transactional ids."""
    from penstock.client.transactions import list_transactions

    found = list_transactions(reach(broker), list(states))
    rows = [(one.transactional_id, one.transaction_state, one.producer_id) for one in found]
    nothing = "no transactional id is in this state" if states else "there are no transactional ids"
    print_rows(("id", "state", "producer"), rows, as_json, nothing)


@command.command("describe")
@click.argument("names", type=TRANSACTIONAL_ID, nargs=-1, required=True, metavar="ID...")
@broker_option
@json_option
def describe(names: tuple[str, ...], broker: KafkaTarget, as_json: bool) -> None:
    """Show producer, state, age and partitions of transactions."""
    reach(broker)
    print_each([_facts(_known(broker, name)) for name in names], as_json, _show)


def _show(facts: dict[str, Any]) -> None:
    parts = " ".join(f"{part['topic']}-{part['partition']}" for part in facts["partitions"])
    shown = {**facts, "partitions": parts or "none"}
    print_facts([(name.replace("_", " "), value) for name, value in shown.items() if value is not None])


@command.command("open")
@click.argument("topic", type=TOPIC)
@broker_option
@json_option
def show_open(topic: str, broker: KafkaTarget, as_json: bool) -> None:
    """Show the transactions that stand open in a topic: readers of committed records wait for them."""
    from penstock.client.transactions import list_transactions

    reach(broker)
    hanging = _open_in(broker, topic)
    ids = {one.producer_id: one.transactional_id for one in list_transactions(broker, [])}
    now_ms = time.time() * 1000
    rows = [
        (
            topic, one.partition, ids.get(one.producer_id), one.producer_id, one.epoch, one.first_offset,
            max(int(now_ms - one.last_ms) // 1000, 0),
        )
        for one in hanging
    ]  # fmt: skip
    print_rows(_COLUMNS, rows, as_json, f"nothing is open in {topic}")


@command.command("abort")
@click.argument("name", type=TRANSACTIONAL_ID, metavar="[ID]", required=False)
@click.option(
    "--topic", type=TOPIC, metavar="NAME", help="Abort what 'open' shows in this topic and nobody owns any more."
)
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="In this partition of --topic.")
@click.option("--producer", type=click.IntRange(min=0), metavar="ID", help="Of this producer.")
@click.option("--fence", is_flag=True, help="Fence whoever works under the id, although it has nothing open.")
@broker_option
def abort(
    name: str | None, topic: str | None, partition: int | None, producer: int | None, fence: bool, broker: KafkaTarget
) -> None:
    """Abort a transaction, and fence whoever works under its id.

    One that hangs in a partition although nobody knows its id any more is named by --topic, --partition and --producer.
    """
    place = (topic, partition, producer)
    if fence and name is None:
        raise click.UsageError("--fence goes with a transactional id")
    if (name is None) == (place == (None, None, None)):
        raise click.UsageError("name either a transactional id, or --topic, --partition and --producer")
    if name is not None:
        _abort(reach(broker), name, fence)
    elif topic is None or partition is None or producer is None:
        raise click.UsageError(
            "--topic, --partition and --producer go together: 'penstock transactions open' shows them"
        )
    else:
        _abort_hanging(reach(broker), topic, partition, producer)


def _abort(broker: KafkaTarget, name: str, fence: bool) -> None:
    from penstock.client.transactions import Ending, abort_transaction

    state = _known(broker, name).transaction_state
    if state != "Ongoing" and not fence:
        what = "is ending by itself" if state in _ENDING else "has nothing open"
        raise PenstockError(f"{name} {what} ({state}), so nothing is aborted; --fence stops whoever works under it")
    ending = abort_transaction(broker, name)
    told = ended_text(name, state, ending)
    if ending is not Ending.ABORT and not fence:
        raise PenstockError(told)
    click.echo(told)


def ended_text(name: str, state: str, ending: Ending) -> str:
    """What became of an id that was in `state` when its abort was asked for."""
    from penstock.client.transactions import Ending

    if ending is Ending.ABORT:
        return f"aborted {name}"
    if ending is Ending.COMMIT:
        return f"{name} was committed, not aborted: its owner was faster, and is fenced now"
    if state == "Ongoing":
        return f"{name} had ended before it could be aborted; its owner is fenced"
    what = "has ended by itself" if state in _ENDING else "had nothing open"
    return f"{name} {what} ({state}); its owner is fenced"


def _abort_hanging(broker: KafkaTarget, topic: str, partition: int, producer: int) -> None:
    from penstock.client.transactions import abort_in_partition, owner_in_partition, partitions_of

    place = f"{topic}-{partition}"
    open_there = [one for one in _open_in(broker, topic) if (one.partition, one.producer_id) == (partition, producer)]
    if not open_there:
        partitions = partitions_of(broker, topic)
        if partition not in partitions:
            raise PenstockError(f"{topic} has no partition {partition}, only 0 to {len(partitions) - 1}")
        see = f"'penstock transactions open {topic}' shows who has"
        raise PenstockError(f"producer {producer} has nothing open in {place}: {see}")
    owner = owner_in_partition(broker, topic, open_there[0])
    if owner is not None:
        raise PenstockError(
            f"what producer {producer} has open in {place} belongs to {owner}, and here alone it would be torn: "
            f"'penstock transactions abort {owner}' aborts all of it"
        )
    abort_in_partition(broker, topic, open_there[0])
    click.echo(f"aborted what producer {producer} had open in {place}")


def _open_in(broker: KafkaTarget, topic: str) -> list[OpenTransaction]:
    from penstock.client.offsets import NoSuchTopicError
    from penstock.client.transactions import open_transactions

    try:
        return open_transactions(broker, topic)
    except NoSuchTopicError:
        raise no_topic(topic) from None


def _known(broker: KafkaTarget, name: str) -> DescribedTransaction:
    from penstock.client.transactions import describe_transaction

    found = describe_transaction(broker, name)
    if found is None:
        raise PenstockError(f"there is no transactional id {name}: 'penstock transactions list' shows what there is")
    return found


def _facts(found: DescribedTransaction) -> dict[str, Any]:
    is_open = found.transaction_state == "Ongoing"
    return {
        "id": found.transactional_id,
        "state": found.transaction_state,
        "producer": found.producer_id,
        "epoch": found.producer_epoch,
        "timeout_ms": found.transaction_timeout_ms,
        "open_s": max(int(time.time() - found.transaction_start_time_ms / 1000), 0) if is_open else None,
        "partitions": [{"topic": t.topic, "partition": index} for t in found.topics for index in t.partitions],
    }

"""What must hold of transactions: after every event, of every answer, and in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.kafka.records.batch import decode_header
from penstock.kafka.records.marker import decode_marker, is_marker
from penstock.kafka.records.record import decode_records
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.kafka.wire.messages.fetch import FetchRequest, FetchResponse
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.kafka.wire.messages.produce import ProduceRequest, ProduceResponse
from penstock.queue.log.layout import TRANSACTIONS_FOLDER
from penstock.queue.transactions.changes import Transaction, decode_change
from penstock.queue.transactions.table import TransactionTable
from proof.sim.clients.committed_reader import CommittedReader, committed_values
from proof.sim.disk_image import Batches, raw_batch
from proof.sim.network import Asked
from proof.sim.table_logs import unlike_replay
from proof.sim.transaction_operations import Deed, Fate, group_of

if TYPE_CHECKING:
    from proof.sim.world_view import WorldView

COMMITTED = 1


def transactions_equal_replay(world: WorldView) -> str | None:
    """What the coordinator believes is what the durable transaction log says, no more and no less."""
    if world.node is None:
        return None
    coordinator = world.node.transactions

    def rebuild(values: list[bytes]) -> object:
        rebuilt = TransactionTable()
        for value in values:
            rebuilt.replay_(decode_change(value))
        return dict(rebuilt.transactions)

    log = coordinator.journal.partition.log
    return unlike_replay(world, TRANSACTIONS_FOLDER, log, rebuild, coordinator.table.transactions)


def stable_end_is_sound(world: WorldView) -> str | None:
    """Readers of committed records get up to the first open transaction, and no further."""
    node = world.node
    if node is None:
        return None
    for account in world.ledger.accounts.values():
        partition = node.store.open.get((account.topic.topic_id.bytes, account.index))
        if partition is None or account.damaged or account.is_trimmed or partition.log.stopped is not None:
            continue
        log = partition.log
        written = world.imager.written(account.folder)
        key = ("stable", account.topic.topic_id, account.index)
        known = world.remembered.get(key)
        if known is None or known[0] is not written or known[1] != log.visible.offset:
            first = _first_open(written, log.visible.offset)
            known = world.remembered[key] = (written, log.visible.offset, first)
        if log.stable.offset != known[2]:
            return f"{account.name}: the stable end is {log.stable.offset}, the first open transaction is at {known[2]}"
    return None


def _first_open(batches: Batches, end: int) -> int:
    opened: dict[int, int] = {}
    for base in sorted(batches):
        header = batches[base].header
        if base >= end:
            break
        if is_marker(header):
            opened.pop(header.producer_id, None)
        elif header.is_transactional:
            opened.setdefault(header.producer_id, base)
    return min(opened.values(), default=end)


def commits_are_decided_first(world: WorldView) -> str | None:
    """A partition hears of a commit only when it is durable that there is one."""
    deeds = world.scene.deeds
    durable = world.imager.durable(TRANSACTIONS_FOLDER)
    if world.remembered.get("decided") is not durable:
        world.remembered["decided"] = durable
        for record in (r for stored in durable.values() for r in decode_records(raw_batch(stored))):
            change = decode_change(record.value or b"")
            if isinstance(change, Transaction) and change.state.is_commit:
                deeds.decided.add((change.producer_id, change.epoch))
    for key, account in world.ledger.accounts.items():
        written = world.imager.written(account.folder)
        if account.topic.is_going or world.remembered.get(("markers", key)) is written:
            continue
        world.remembered["markers", key] = written
        for base, stored in written.items():
            who = (stored.header.producer_id, stored.header.producer_epoch)
            if who not in deeds.decided and is_marker(stored.header) and decode_marker(raw_batch(stored)).is_commit:
                return f"{account.name}: offset {base} says that producer {who[0]} committed, and that is not decided"
    return None


def positions_come_with_commits(world: WorldView) -> str | None:
    """A position taken into a transaction is not seen before somebody asked to commit that."""
    node, deeds = world.node, world.scene.deeds
    if node is None:
        return None
    for owner in world.transactors:
        group = group_of(owner.transactional_id)
        for position in node.groups.table.positions.get(group, {}).values():
            deed = deeds.of_position[owner.transactional_id, position.offset]
            if not deed.may_be_seen:
                return f"{group} stands at {position.offset}, whose transaction nobody committed"
    return None


def only_committed_is_seen(world: WorldView, asked: Asked, response: Message) -> str | None:
    """Nothing of a transaction is given to readers of committed records before its owner asked to commit it."""
    if not isinstance(response, FetchResponse) or not isinstance(asked.request, FetchRequest):
        return None
    if asked.request.isolation_level != COMMITTED:
        return None
    for topic in response.responses:
        for data in topic.partitions:
            for value in committed_values(world.ledger, data):
                deed = world.scene.deeds.of_value.get(value)
                if deed is not None and not deed.may_be_seen:
                    return f"{value} of {deed.transactional_id} is seen, and nobody committed it"
    return None


def fenced_cannot_write(world: WorldView, asked: Asked, response: Message) -> str | None:
    """Once an owner has its epoch, nothing of an earlier one that arrives is taken."""
    deeds = world.scene.deeds
    request = asked.request
    if isinstance(response, InitProducerIdResponse) and isinstance(request, InitProducerIdRequest):
        if request.transactional_id and not response.error_code:
            grants = deeds.granted.setdefault(response.producer_id, [])
            grants.append((response.producer_epoch, world.now_ms))
        return None
    if isinstance(response, ProduceResponse) and isinstance(request, ProduceRequest) and request.transactional_id:
        part = request.topic_data[0].partition_data[0]
        header = decode_header(part.records or b"")
        who, is_taken = (header.producer_id, header.producer_epoch), not _produce_code(response)
    elif isinstance(response, EndTxnResponse) and isinstance(request, EndTxnRequest):
        who, is_taken = (request.producer_id, request.producer_epoch), not response.error_code
    else:
        return None
    for epoch, granted_ms in deeds.granted.get(who[0], ()):
        if is_taken and epoch > who[1] and asked.delivered_ms > granted_ms:
            return f"producer {who[0]} was given epoch {epoch}, and {asked.key.name} of epoch {who[1]} was taken"
    return None


def _produce_code(response: ProduceResponse) -> int:
    return response.responses[0].partition_responses[0].error_code


def torn(world: WorldView, last: CommittedReader) -> str | None:
    """A transaction is seen whole if its owner was told so, whole or not at all if it was not told, else never."""
    for deed in world.scene.deeds.all:
        found = _seen(world, deed, last)
        if True in found and not deed.may_be_seen:
            return f"{deed.transactional_id}: {_values(deed)} was not committed and is seen"
        if False in found and (deed.fate is Fate.COMMITTED or True in found):
            return f"{deed.transactional_id}: {_values(deed)} is seen in part: {found}"
    return _lost_position(world)


def _seen(world: WorldView, deed: Deed, last: CommittedReader) -> list[bool]:
    """For each value that cannot have been removed for another reason, whether it was seen."""
    found = []
    for place, values in deed.values.items():
        topic = world.ledger.topics[place.topic]
        account = world.ledger.account(topic, place.number)
        if not (topic.is_going or topic.in_memory or account.is_trimmed or account.damaged):
            seen = last.seen_in(place.topic, place.number)
            found += [value in seen for value in values]
    return found


def _values(deed: Deed) -> list[str]:
    return [value for values in deed.values.values() for value in values]


def _lost_position(world: WorldView) -> str | None:
    if world.node is None:
        return None
    for deed in world.scene.deeds.all:
        if deed.fate is not Fate.COMMITTED or deed.position is None:
            continue
        group = group_of(deed.transactional_id)
        known = world.node.groups.table.positions.get(group, {})
        later = [p.offset for p in known.values() if p.offset >= deed.position]
        gone = any(topic.is_going for topic in world.ledger.topics.values())
        if not later and not gone:
            return f"{group} was told that {deed.position} is committed, and it is not"
    return None

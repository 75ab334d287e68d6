"""What must hold of every answer, at the moment the node gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import HEADER_SIZE, BatchHeader, crc_matches, decode_header
from penstock.kafka.wire.message import Message
from penstock.kafka.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from penstock.kafka.wire.messages.fetch import FetchResponse, PartitionData
from penstock.kafka.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.kafka.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from penstock.kafka.wire.messages.produce import PartitionProduceResponse, ProduceResponse
from proof.sim.checks.groups import nobody_fenced_commits, one_owner_in_a_generation
from proof.sim.checks.transactions import fenced_cannot_write, only_committed_is_seen
from proof.sim.clients.producer import Flight
from proof.sim.network import Asked
from proof.sim.promises import Account, Promise

if TYPE_CHECKING:
    from proof.sim.clients.producer import SentBatch
    from proof.sim.world_view import WorldView

Check = Callable[["WorldView", Asked, Message], str | None]
LATEST = -1


def offsets_never_change(world: WorldView, asked: Asked, response: Message) -> str | None:
    """An offset means one record, in every acknowledgement and every read, for ever."""
    for account, batch, part in acks(world, asked, response):
        if not part.error_code and (why := _tell(account, part.base_offset, batch.count, batch.payload)):
            return why
    for account, header, payload in served(world, response):
        if not header.is_control and (why := _tell(account, header.base_offset, header.record_count, payload)):
            return why
    return None


def no_ack_after_failed_sync(world: WorldView, asked: Asked, response: Message) -> str | None:
    """After a failed sync nothing sent to that partition is acknowledged until the node was started again."""
    for account, _, part in acks(world, asked, response):
        failed_ms = world.sync_failed_ms.get(account.folder)
        if failed_ms is not None and not part.error_code and asked.delivered_ms > failed_ms:
            return f"{account.name}: offset {part.base_offset} was acknowledged after a failed sync"
    return None


def ack_keeps_its_promise(world: WorldView, asked: Asked, response: Message) -> str | None:
    """Notes what is promised; acked-is-durable holds the node to it from this event on."""
    for account, batch, part in acks(world, asked, response):
        if not part.error_code:
            promise = Promise(batch.payload, part.base_offset + batch.count, batch.timestamp)
            account.acked[part.base_offset] = promise
    return None


def visible_is_durable(world: WorldView, asked: Asked, response: Message) -> str | None:
    """Readers are given durable records only, and are told of no end beyond them."""
    for account, header, payload in served(world, response):
        if account.topic.in_memory or account.damaged or account.topic.is_going:
            continue
        durable = world.imager.durable(account.folder)
        stored = durable.get(header.base_offset)
        if stored is None and account.is_trimmed and header.base_offset < min(durable, default=header.next_offset):
            continue  # removed in the same step, after it was read
        if stored is None or stored.payload != payload:
            return f"{account.name}: offset {header.base_offset} was served and is not durable"
    for account, end in ends(world, asked, response):
        if account.topic.in_memory or account.damaged or account.topic.is_going:
            continue
        if end > world.imager.durable_end(account.folder):
            durable_end = world.imager.durable_end(account.folder)
            return f"{account.name}: end {end} was told, durable is {durable_end}"
    return None


def end_never_goes_back(world: WorldView, asked: Asked, response: Message) -> str | None:
    """The end of a log only grows, whatever happens to the node."""
    for account, end in ends(world, asked, response):
        # Of answers that leave together on two connections nobody can tell which was given first.
        if account.told_at != world.steps:
            account.told_at, account.end_before, account.told_to = world.steps, account.end, {}
        before = account.told_to.get(world.answering, account.end_before)
        if end < before:
            return f"{account.name}: the end was {before} and is {end} now"
        account.told_to[world.answering] = end
        account.end = max(account.end, end)
    return None


def deleted_stays_deleted(world: WorldView, asked: Asked, response: Message) -> str | None:
    """Records deleted on request never come back."""
    if isinstance(response, DeleteRecordsResponse) and isinstance(asked.request, DeleteRecordsRequest):
        for wanted, topic in zip(asked.request.topics, response.topics, strict=True):
            known = world.ledger.topics.get(topic.name)
            for ask, part in zip(wanted.partitions, topic.partitions, strict=True):
                if not part.error_code and known is not None:
                    account = world.ledger.account(known, part.partition_index)
                    account.deleted_below = max(account.deleted_below, ask.offset)
    for account, header, _ in served(world, response):
        if header.next_offset <= account.deleted_below:
            return f"{account.name}: offset {header.base_offset} was deleted and is served"
    return None


def damage_is_never_served(world: WorldView, asked: Asked, response: Message) -> str | None:
    """Whatever is served is whole, and was sent by somebody."""
    for account, header, payload in served(world, response):
        if not header.is_control and payload not in world.ledger.values:
            return f"{account.name}: what is served at offset {header.base_offset} was never sent"
    return None


def no_false_damage(world: WorldView, asked: Asked, response: Message) -> str | None:
    """No record is called damaged on a disk that damages nothing."""
    for account, data in fetched(world, response):
        if data.error_code == ErrorCode.CORRUPT_MESSAGE and not account.damaged:
            return f"{account.name} is called damaged"
    return None


def producer_ids_are_unique(world: WorldView, asked: Asked, response: Message) -> str | None:
    """No producer id is given out twice."""
    if isinstance(response, InitProducerIdResponse) and not response.error_code:
        name = asked.request.transactional_id if isinstance(asked.request, InitProducerIdRequest) else None
        if name and world.ledger.producer_ids.get(response.producer_id) == name:
            return None  # the same id under a new epoch
        if response.producer_id in world.ledger.producer_ids:
            return f"producer id {response.producer_id} was given out twice"
        world.ledger.producer_ids[response.producer_id] = name or ""
    return None


ON_REPLY: dict[str, Check] = {
    "no-ack-after-failed-sync": no_ack_after_failed_sync,
    "acked-is-durable": ack_keeps_its_promise,
    "offsets-never-change": offsets_never_change,
    "visible-is-durable": visible_is_durable,
    "end-never-goes-back": end_never_goes_back,
    "deleted-stays-deleted": deleted_stays_deleted,
    "damage-is-never-served": damage_is_never_served,
    "no-false-damage": no_false_damage,
    "producer-ids-are-unique": producer_ids_are_unique,
    "one-owner-in-a-generation": one_owner_in_a_generation,
    "nobody-fenced-commits": nobody_fenced_commits,
    "only-committed-is-seen": only_committed_is_seen,
    "fenced-cannot-write": fenced_cannot_write,
}


def acks(
    world: WorldView, asked: Asked, response: Message
) -> Iterator[tuple[Account, SentBatch, PartitionProduceResponse]]:
    if isinstance(response, ProduceResponse):
        flight: Flight = asked.tag  # type: ignore[assignment]  # set by the producer
        parts = [part for topic in response.responses for part in topic.partition_responses]
        for (lane, batch), part in zip(flight, parts, strict=True):
            yield world.ledger.account(lane.topic, lane.index), batch, part


def fetched(world: WorldView, response: Message) -> Iterator[tuple[Account, PartitionData]]:
    if isinstance(response, FetchResponse):
        for topic in response.responses:
            known = world.ledger.topic(topic.topic, topic.topic_id)
            for data in topic.partitions:
                if known is not None:
                    yield world.ledger.account(known, data.partition_index), data


def served(world: WorldView, response: Message) -> Iterator[tuple[Account, BatchHeader, bytes]]:
    """Every batch in a fetch reply; one that is not whole has an empty payload."""
    for account, data in fetched(world, response):
        raw = bytes(data.records or b"")
        at = 0
        while at < len(raw):
            header = decode_header(raw, at)
            whole = at + header.size <= len(raw) and crc_matches(raw, at, header)
            yield account, header, raw[at + HEADER_SIZE : at + header.size] if whole else b""
            at += max(header.size, HEADER_SIZE)


def ends(world: WorldView, asked: Asked, response: Message) -> Iterator[tuple[Account, int]]:
    """Every end of a log that this answer tells."""
    for account, data in fetched(world, response):
        if not data.error_code:
            yield account, data.high_watermark
    if isinstance(response, ListOffsetsResponse) and isinstance(asked.request, ListOffsetsRequest):
        for wanted, topic in zip(asked.request.topics, response.topics, strict=True):
            known = world.ledger.topics.get(topic.name)
            for ask, part in zip(wanted.partitions, topic.partitions, strict=True):
                if ask.timestamp == LATEST and not part.error_code and known is not None:
                    yield world.ledger.account(known, part.partition_index), part.offset


def _tell(account: Account, base: int, count: int, payload: bytes) -> str | None:
    for delta in range(count):
        told = account.told.setdefault(base + delta, (payload, delta))
        if told != (payload, delta):
            return f"{account.name}: offset {base + delta} means two records"
    return None

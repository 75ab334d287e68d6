"""A run: first faults, in which nothing may be lost; then calm, in which everything must finish."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from penstock.assure.checker import check
from penstock.assure.history import Poll
from penstock.assure.verdict import Violation
from penstock.config.topic import TOPIC_SETTINGS
from penstock.queue.core import memory_budget as room
from penstock.queue.core import metadata_log as metalog
from penstock.queue.core import table_log as journal
from penstock.queue.handlers import fetch
from penstock.queue.log import index as log_index
from penstock.queue.transactions.changes import State
from proof.sim.checks.loads import READ_IN_STEP_MAX
from proof.sim.checks.transactions import torn
from proof.sim.clients.committed_reader import CommittedReader
from proof.sim.clients.consumer import Consumer
from proof.sim.fault_schedule import Chaos
from proof.sim.world import BrokenError, World

CALM_STEPS_MAX = 1500


SMALL = (
    (metalog, "_COMPACT_AFTER", 6),
    (metalog, "SPARE_BYTES", 4096),
    (journal, "COMPACT_BYTES", 1500),
    (room, "LITTLE_BYTES", 500),
    (room, "REPLY_BYTES_UNHELD", 1500),
    (fetch, "_SMALL_BYTES", READ_IN_STEP_MAX),
    (log_index, "INTERVAL_BYTES", 300),
)


@contextmanager
def small_world() -> Iterator[None]:
    """Limits meant for large disks and clients are lowered, so that small logs roll and compact like large ones."""
    segment_bytes = TOPIC_SETTINGS["segment.bytes"]
    before = [getattr(owner, name) for owner, name, _ in SMALL]
    TOPIC_SETTINGS["segment.bytes"] = replace(segment_bytes, at_least=1)
    for owner, name, value in SMALL:
        setattr(owner, name, value)
    try:
        yield
    finally:
        TOPIC_SETTINGS["segment.bytes"] = segment_bytes
        for (owner, name, _), value in zip(SMALL, before, strict=True):
            setattr(owner, name, value)


def run(world: World) -> World:
    """The whole story of a world; BrokenError when a promise does not hold."""
    with small_world():
        chaos = Chaos(world)
        for _ in range(world.profile.steps):
            chaos.strike()
            world.moment()
        calm_down(world)
        final_read(world)
    return world


def calm_down(world: World) -> None:
    """No more faults: every request is answered, every batch settled, every reader at the end."""
    world.disk.faults.calm_down()
    world.note("calm")
    world.scene.is_calm = True
    for _ in range(CALM_STEPS_MAX):
        _revive(world)
        world.moment(calm=True)
        if _is_finished(world):
            return
    raise BrokenError("calm-finishes", _unfinished(world))


def _revive(world: World) -> None:
    if world.node is not None and world.node.stopped:
        world.kill() if world.chance.random() < 0.5 else world.stop()
    if world.node is None:
        world.start()


def _is_finished(world: World) -> bool:
    return (
        all(producer.is_done for producer in world.producers)
        and all(consumer.is_at_end for consumer in world.consumers)
        and all(member.is_settled for member in world.members)
        and all(transactor.is_done for transactor in world.transactors)
        and all(rereader.is_done for rereader in world.rereaders)
        and not _open_transactions(world)
        and not (world.admin.link is not None and world.admin.link.in_flight)
        and not world.jobs
        and not world.ended
        and not world.loader.under_way
    )


def _unfinished(world: World) -> str:
    waiting = [p.name for p in world.producers if not p.is_done] + [c.name for c in world.consumers if not c.is_at_end]
    waiting += [member.name for member in world.members if not member.is_settled]
    waiting += [r.name for r in world.rereaders if not r.is_done]
    waiting += [t.name for t in world.transactors if not t.is_done] + _open_transactions(world)
    stopped = world.node.stopped if world.node is not None else "down"
    return f"after {CALM_STEPS_MAX} calm steps {waiting or 'the admin or a sync'} still waits; stopped: {stopped}"


def _open_transactions(world: World) -> list[str]:
    if world.node is None:
        return []
    known = world.node.transactions.table.transactions.values()
    return [t.transactional_id for t in known if t.state is State.ONGOING or t.state.is_ending]


def final_read(world: World) -> None:
    """A last consumer reads everything from the beginning; then the history is judged."""
    last, committed = Consumer(world.scene, "last"), CommittedReader(world.scene, "last-committed")
    for topic in world.ledger.live():
        for index in range(topic.partitions):
            last.follow(topic, index)
            committed.follow(topic, index)
    world.consumers += [last, committed]
    for _ in range(CALM_STEPS_MAX):
        world.moment(calm=True)
        if last.is_at_end and committed.is_at_end:
            break
    else:
        raise BrokenError("calm-finishes", "the last read does not come to the end")
    last.record_ends()
    if (what := torn(world, committed)) is not None:
        raise BrokenError("transactions-are-whole", what)
    if world.damage:
        _nothing_behind_damage_is_lost(world)
    else:
        _history_is_valid(world)


def _history_is_valid(world: World) -> None:
    torn = {account.topic.name for account in world.ledger.accounts.values() if account.damaged}
    live = {topic.name for topic in world.ledger.live()} - torn
    verdict = check([event for event in world.scene.history if getattr(event, "topic", None) in live])
    for finding in verdict.findings:
        topic = world.ledger.topics[finding.topic]
        # Where records were removed, what was known of their producers may be gone with them.
        is_trimmed = world.ledger.account(topic, finding.partition).is_trimmed
        if not (is_trimmed and finding.violation in (Violation.DUPLICATE, Violation.ACKED_AT_OTHER_OFFSET)):
            raise BrokenError("history-is-valid", finding.sentence)


def _nothing_behind_damage_is_lost(world: World) -> None:
    """Every acknowledged batch in which no bit was flipped was given to the last reader, or can still be had."""
    seen: dict[tuple[str, int], set[int]] = {}
    for event in world.scene.history:
        if isinstance(event, Poll) and event.process == "last":
            seen.setdefault((event.topic, event.partition), set()).update(offset for offset, _ in event.records)
    for account in world.ledger.accounts.values():
        if account.topic.is_going or account.topic.in_memory:
            continue
        got = seen.get((account.topic.name, account.index), set())
        for base, promise in account.acked.items():
            if base in account.damaged or promise.next_offset - 1 in got:
                continue
            if not account.may_be_gone(promise, world.now_ms):
                what = f"{account.name}: offset {base} is whole on the disk and was not served"
                raise BrokenError("nothing-behind-damage-is-lost", f"{what}; damaged are {account.damaged}")

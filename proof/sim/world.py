"""One seed, one world: a node, its disk, its clients, and everything that goes wrong."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Any
from uuid import UUID

from penstock.errors import StorageError
from penstock.queue.core.events import Close, Drained, Effect, Event, Load, Note, Pause, Reply, Resume, Sync
from penstock.queue.handlers.fetch import LOADS_EACH
from penstock.queue.node import Node
from proof.sim.checks.invariants import AFTER_STEP
from proof.sim.checks.replies import ON_REPLY
from proof.sim.client_context import Scene
from proof.sim.clients.admin import Admin
from proof.sim.clients.committed_reader import CommittedReader
from proof.sim.clients.consumer import Consumer
from proof.sim.clients.consumer_member import NewerMember
from proof.sim.clients.member import Member
from proof.sim.clients.producer import Lane, Producer
from proof.sim.clients.rereader import Rereader
from proof.sim.clients.transactor import Transactor
from proof.sim.disk import FakeDisk
from proof.sim.disk_image import Imager
from proof.sim.inode import Mood
from proof.sim.network import Client, Link, WrongReplyError
from proof.sim.profile import Profile, make_profile
from proof.sim.promises import SimTopic
from proof.sim.read_jobs import Loader
from proof.sim.sync_jobs import Job


class BrokenError(Exception):
    """A named invariant does not hold."""

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant = invariant
        self.what = what


class World:
    """`run` is in story.py; here is what a moment consists of."""

    def __init__(
        self, seed: int, *, damage: bool = False, profile: Profile | None = None, only: str | None = None
    ) -> None:
        self.seed = seed
        self._only = only  # judge by this invariant alone
        self.chance = Random(seed)
        self.damage = damage
        self.profile = profile or make_profile(self.chance, damage=damage)
        self.disk = FakeDisk(Random(seed + 1))
        self.imager = Imager(self.disk)
        self.scene = Scene(self.chance, self._connect)
        self.ledger = self.scene.ledger
        self.node: Node | None = None
        self.links: dict[int, Link] = {}
        self.jobs: list[Job] = []
        self.ended: list[Job] = []
        self.loader = Loader(self.disk, self.chance)
        self.remembered: dict[object, Any] = {}
        self.sync_failed_ms: dict[str, int] = {}
        self.unopened: dict[str, None] = {}  # partitions that a failing disk kept from being opened
        self.steps = 0
        self.before_ms = 0
        self.starts = 0
        self.answering = 0  # the connection whose answers are being judged
        self.trace: list[str] = []
        self._gone: list[Event] = []
        self._ended_groups: list[str] = []
        self._next_link = 0
        self._put_aside: set[int] = set()  # connections whose requests waited to be taken up after the last step
        self.admin = Admin(self.scene, self._on_topic)
        self.producers = [
            Producer(self.scene, f"p{n}", self.chance.random() < 0.8, self.chance.choice((-1, -1, -1, 1, 0)))
            for n in range(self.profile.producers)
        ]
        for producer in self.producers:
            producer.acks = -1 if producer.idempotent else producer.acks
        self.consumers = [Consumer(self.scene, f"c{n}") for n in range(self.profile.consumers)]
        self.members = [
            Member(self.scene, f"m{n}", f"g{n % 2}", is_static=self.chance.random() < 0.3)
            for n in range(self.profile.members)
        ]
        self.members += [
            NewerMember(self.scene, f"n{n}", "newer", is_static=self.chance.random() < 0.3)
            for n in range(self.profile.newer_members)
        ]
        # The second has the name of the first: one of them is fenced again and again.
        self.transactors = [
            Transactor(self.scene, f"x{n}", f"t{n // 2}", by_epoch=self.chance.random() < 0.5)
            for n in range(self.profile.transactors)
        ]
        if self.transactors:
            self.consumers.append(CommittedReader(self.scene, "committed"))
        self.rereaders = [Rereader(self.scene, f"r{n}") for n in range(self.profile.rereaders)]

    @property
    def now_ms(self) -> int:
        return self.scene.now_ms

    # Clients.

    def _connect(self, client: Client) -> Link | None:
        if self.node is None:
            return None
        self._next_link += 1
        link = self.links[self._next_link] = Link(self._next_link, client)
        return link

    def _on_topic(self, topic: SimTopic) -> None:
        self.ledger.add(topic)
        for index in range(topic.partitions):
            self.ledger.account(topic, index)
            for producer in self.producers:
                if self.chance.random() < 0.7:
                    producer.lanes[topic.name, index] = Lane(topic, index)
            followers: list[Consumer | Transactor] = [*self.consumers, *self.transactors]
            for follower in followers:
                if self.chance.random() < 0.7:
                    follower.follow(topic, index)

    def break_link(self, link: Link) -> None:
        self._gone += link.break_off()
        self.links.pop(link.number, None)

    # The node.

    def start(self) -> bool:
        """Start a node on the disk as it is; False if it refuses, which only a failing disk excuses."""
        self.disk.failed.clear()
        self.sync_failed_ms.clear()
        self.remembered.clear()
        self.starts += 1
        raised = self.disk.faults.raised
        try:
            config, address = self.profile.config, ("node", 9092)
            self.node = Node(self.disk, config, address, self._new_id, self.now_ms, self._ended_groups.append)
        except (OSError, StorageError) as error:
            if self.disk.faults.raised == raised:
                raise BrokenError("node-starts", f"on a healthy disk: {error}") from error
            self.note(f"start refused: {error}")
            return False
        self.note("started")
        return True

    def _new_id(self) -> UUID:
        return UUID(int=self.chance.getrandbits(128))

    def drop_node(self) -> None:
        """The process is gone, with its connections and its unfinished syncs."""
        self.node = None
        for link in list(self.links.values()):
            self.break_link(link)
        self._gone.clear()
        for job in self.jobs:
            while not job.is_done and self.chance.random() < 0.5:
                job.advance()
        self.jobs.clear()
        self.ended.clear()
        self.loader.drop_all()

    def cut_power(self) -> None:
        mood = self.chance.choice((Mood.MIXED, Mood.MIXED, Mood.MIXED, Mood.NOTHING, Mood.EVERYTHING))
        self.note(f"power cut, {mood.name}")
        self.drop_node()
        self.disk.cut_power(mood)

    def kill(self) -> None:
        self.note("kill -9")
        self.drop_node()

    def stop(self) -> None:
        """A clean stop, as the loop does it."""
        self.note("clean stop")
        node = self.node
        if node is None:
            return
        self._perform(node.sync_all())
        for _ in range(1000):
            if not node.is_syncing:
                break
            for job in self.jobs:
                while not job.is_done:
                    job.advance()
            self.ended += self.jobs
            self.jobs = []
            self._step_node(self._synced(1.0))
        else:
            raise BrokenError("calm-finishes", "a clean stop does not come to an end")
        # A disk that fails now costs the next start a scan, nothing else.
        with suppress(OSError):
            node.shut_down()
        self.drop_node()

    # One moment.

    def moment(self, *, calm: bool = False) -> None:
        """Clients act, events arrive in batches, the node steps, and every invariant is looked at."""
        self.steps += 1
        self.before_ms = self.now_ms
        chance = self.chance
        self.scene.now_ms += (
            100 if calm else chance.choice((1, 1, 1, 5, 30, 300, 40_000 if chance.random() < 0.1 else 2))
        )
        if self.node is None:
            return
        clients: list[Admin | Producer | Consumer | Member | Transactor | Rereader] = [
            self.admin,
            *self.producers,
            *self.consumers,
            *self.members,
            *self.transactors,
            *self.rereaders,
        ]
        for client in clients:
            for _ in range(1 if calm else chance.choice((0, 1, 1, 3))):
                client.act()
        frames: list[memoryview] = []
        sources: list[list[Event]] = [[event] for event in self._gone]
        self._gone = []
        for link in list(self.links.values()):
            if calm or chance.random() < 0.6:
                sources.append(link.deliver(chance.randint(1, 6), self.now_ms, frames) + self._drained(link))
        self._sync_some(1.0 if calm else self.profile.sync_speed)
        sources += [[event] for event in self._synced(1.0 if calm else 0.6)]
        sources += [[event] for event in self.loader.end_some(1.0 if calm else self.profile.load_speed)]
        self._step_node(self._shuffled(sources))
        for frame in frames:
            frame[:] = b"\xee" * len(frame)  # the runtime reads the next requests into the same memory
        for link in list(self.links.values()):
            if calm or chance.random() < 0.6:
                link.hand_over(chance.randint(1, 4))
            if link.is_closing and not link.incoming:
                self.break_link(link)
        self.check()

    def _shuffled(self, sources: list[list[Event]]) -> list[Event]:
        """All events in a random order that keeps the order of each source."""
        events: list[Event] = []
        sources = [source for source in sources if source]
        while sources:
            source = self.chance.choice(sources)
            events.append(source.pop(0))
            if not source:
                sources.remove(source)
        return events

    def _step_node(self, events: list[Event]) -> None:
        if self.node is None:
            return
        self.disk.pages.cold_reads.clear()
        try:
            effects = self.node.step(events, self.now_ms)
        except Exception as error:  # whatever escapes from a step would end the process
            raise BrokenError("step-never-raises", f"{type(error).__name__}: {error}") from error
        self._perform(effects)
        for group in self._ended_groups:
            self.ledger.forget_group(group)
        self._ended_groups.clear()

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            match effect:
                case Reply():
                    self._reply(effect)
                case Sync():
                    self._begin_sync(effect)
                case Load() if self.node is not None:
                    tries = self.node.loads.under_way[effect.job].loads
                    folders = tuple(f"{log.folder}/" for log, count in tries.items() if count >= LOADS_EACH)
                    self.loader.begin(effect, is_last=any(p.file.path.startswith(folders) for p in effect.parts))
                case Pause(connection=number) | Resume(connection=number):
                    if number in self.links:
                        self.links[number].is_paused = isinstance(effect, Pause)
                        self._restart_waits(self.links[number])
                case Note(event="partition cannot be opened", details=details):
                    self.unopened[str(details["partition"])] = None
                case Close(connection=number, reason=reason):
                    self.note(f"closed: {reason}")
                    if number in self.links:
                        self.links[number].is_closing = True
        waits = {c.number for c in self.node.connections.values() if c.backlog} if self.node is not None else set()
        for number in sorted(waits | self._put_aside):
            if number in self.links:
                self._restart_waits(self.links[number])
        self._put_aside = waits

    def _restart_waits(self, link: Link) -> None:
        """What the node has put aside it has not begun to wait for."""
        for asked in link.unanswered:
            asked.waits_from_ms = self.now_ms

    def _reply(self, reply: Reply) -> None:
        link = self.links.get(reply.connection)
        if link is None:
            return
        self.answering = reply.connection
        link.owes_drained = link.owes_drained or reply.is_large
        try:
            answers = link.take(b"".join(reply.chunks))
        except WrongReplyError as error:
            raise BrokenError("replies-in-order", str(error)) from error
        for asked, response in answers:
            for name, check in ON_REPLY.items():
                self._judge(name, check(self, asked, response))

    def _drained(self, link: Link) -> list[Event]:
        if link.owes_drained and not link.incoming:
            link.owes_drained = False
            return [Drained(link.number)]
        return []

    # Syncs.

    def _begin_sync(self, sync: Sync) -> None:
        try:
            self.jobs.append(Job(self.disk, sync))
        except OSError as error:
            raise BrokenError("step-never-raises", f"a sync cannot begin: {error}") from error

    def _sync_some(self, speed: float) -> None:
        for job in self.chance.sample(self.jobs, k=len(self.jobs)):
            while not job.is_done and self.chance.random() < speed:
                job.advance()
            if job.is_done:
                self.jobs.remove(job)
                self.ended.append(job)

    def _synced(self, rate: float) -> list[Event]:
        events: list[Event] = []
        for job in self.chance.sample(self.ended, k=len(self.ended)):
            if self.chance.random() < rate:
                self.ended.remove(job)
                events.append(job.event)
                if job.error is not None:
                    for path in job.paths:
                        folder = path.rpartition("/")[0] if path.endswith(".log") else path
                        self.sync_failed_ms.setdefault(folder, self.now_ms)
        return events

    # Judgement.

    def check(self) -> None:
        for name, holds in AFTER_STEP.items():
            if self._only in (None, name):
                self._judge(name, holds(self))

    def _judge(self, name: str, what: str | None) -> None:
        if what is not None and self._only in (None, name):
            raise BrokenError(name, what)

    def note(self, what: str) -> None:
        self.trace.append(f"{self.steps:4} {what}")

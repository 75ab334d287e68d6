"""Starts broker, edge and analyze, watches them, and starts again what ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from penstock.analyze.checkpoints import Checkpoint
from penstock.client.factory import admin_client
from penstock.client.lease import UNSAFE_AFTER_S, Holder, Lease, LeaseLostError, wanted_lease_topic
from penstock.client.topic_identity import identity_errors, topic_ids
from penstock.client.topics import TopicProvider
from penstock.errors import ConfigError, PenstockError
from penstock.events.headers import QUERIES_TOPIC
from penstock.kafka.target import KafkaTarget
from penstock.plan.plan import Plan
from penstock.plan.run_spec import CHECKED_FIRST, LEASED
from penstock.plan.topics import wanted_topics
from penstock.process.run_spec_file import write_private
from penstock.process.supervisor_orders import RENEWED, topics_order
from penstock.supervisor.child import Child
from penstock.supervisor.lease_keeper import LeaseKeeper
from penstock.supervisor.options import RunOptions

Say = Callable[[str, str], None]
Answer = TypeVar("Answer")

_TOPICS_EVERY_S = 1.0


def have_run(plan: Plan, data: Path) -> bool:
    """Whether every query of the app has had a batch on this data: then Spark has found before that it can run."""
    return all(Checkpoint(data / "analyze" / "checkpoints", name).is_begun for name in plan.queries)


class Supervisor:
    """The life of one run."""

    def __init__(self, plan: Plan, options: RunOptions, queue: KafkaTarget, data: Path, say: Say) -> None:
        self._plan = plan
        self._options = options
        self._queue = queue
        self._data = data
        self._say = say
        self._is_provided = False
        self._ids: dict[str, str] = {}
        self._providing = asyncio.Lock()
        self._me = holder_of(data, serves_queue=options.queue is None)
        self._keeper: LeaseKeeper | None = None
        self._lease_trouble = ""
        self._lost: asyncio.Future[LeaseLostError] | None = None
        logs = data / "logs"
        logs.mkdir(exist_ok=True)
        python = [sys.executable, "-m"]
        spec = str(data / "run" / "spec.json")
        analyze = Child("analyze", [*python, "penstock.analyze", spec, LEASED], logs, say)
        if have_run(plan, data):
            analyze.is_checked.set()  # an event of a restart is worth more than a refusal that hardly comes
        edge = [*python, "penstock.edge", spec]
        if plan.queries:
            edge.append(CHECKED_FIRST)
        self._children = {
            "broker": Child("broker", self._broker_command(), logs, say),
            "edge": Child("edge", edge, logs, say, opens=analyze.is_checked if plan.queries else None),
            "analyze": analyze,
        }
        if options.queue:
            del self._children["broker"]
        if not plan.queries:
            del self._children["analyze"]

    def _broker_command(self) -> list[str]:
        data = str(self._data / "queue")
        command = [sys.executable, "-m", "penstock", "broker", "--data", data, "--listen", str(self._queue)]
        broker = self._options.broker
        command += ["--advertise", broker.advertise] if broker.advertise else []
        return [*command, "--insecure"] if broker.insecure else command

    async def run(self) -> int:
        """Keep all children until a signal comes, one of them cannot be, or another run takes the app over."""
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        lost = self._lost = loop.create_future()
        keepers = {name: asyncio.create_task(self._keep(name)) for name in self._children}
        watching = asyncio.create_task(self._watch_topics())
        ready = asyncio.create_task(self._announce())
        stopped = asyncio.create_task(stop.wait())
        faults: list[str] = []
        try:
            done, _ = await asyncio.wait({stopped, lost, *keepers.values()}, return_when=asyncio.FIRST_COMPLETED)
            if lost in done and "analyze" in self._children:
                self._children["analyze"].kill()  # the other run writes the same results from now on
            for keeper in done - {stopped, lost}:
                faults += keeper.result()
        finally:
            ready.cancel()
            watching.cancel()
            self._say("", "stopping")
            for name in ("edge", "analyze"):
                if name in self._children:
                    await self._children[name].stop()
            if self._keeper is not None:
                await self._keeper.end()
            if "broker" in self._children:
                await self._children["broker"].stop()
            for keeper in keepers.values():
                keeper.cancel()
            await asyncio.gather(*keepers.values(), ready, watching, return_exceptions=True)
        if faults:
            raise ConfigError(*faults)
        self._say("", "stopped")
        if lost.done():
            raise lost.result()
        return 0

    async def _keep(self, name: str) -> list[str]:
        try:
            # Spark takes seconds to start, and waits for the topics by itself.
            return await self._children[name].keep(self._provide if name == "edge" else None)
        except ConfigError as wrong:
            return list(wrong.faults)

    async def _provide(self) -> None:
        """The queue is there, the lease is held, and the topics exist: before that the edge has nothing to do."""
        if "broker" in self._children:
            await self._children["broker"].is_ready.wait()
        async with self._providing:
            if self._is_provided:
                return
            replicas = max((topic.replicas for topic in self._plan.topics.values()), default=1)
            lease = wanted_lease_topic(self._plan.app, replicas)
            await self._until_answered(TopicProvider(self._queue, [lease], self._plan.app).provide)
            await self._acquire()
            wanted = list(wanted_topics(self._plan))
            provider = TopicProvider(self._queue, wanted, self._plan.app, self._options.adopt)
            provided = await self._until_answered(provider.provide)
            for difference in provided.differences:
                self._say("", difference.sentence)
            self._ids = {name: provided.ids[name] for name in (topic.name for topic in wanted) if name != QUERIES_TOPIC}
            self._is_provided = True

    async def _until_answered(self, call: Callable[[], Answer]) -> Answer:
        """What a blocking call returns; it is called again while the queue is away."""
        while True:
            try:
                return await asyncio.to_thread(call)
            except ConfigError:
                raise
            except PenstockError as away:
                self._say("", f"{away}; trying again")
                await asyncio.sleep(1.0)

    async def _acquire(self) -> None:
        lease = Lease(self._queue, self._plan.app, self._me)
        await self._until_answered(partial(lease.acquire, take_over=self._options.take_over))
        if self._options.take_over and self._plan.queries and not have_run(self._plan, self._data):
            self._say(
                "",
                f"{self._data} has no checkpoint of every query: those without one begin at the start of their topics, "
                "and write again what the run before has written",
            )
        self._on_renewed()
        self._keeper = LeaseKeeper(
            lease, on_renewed=self._on_renewed, on_trouble=self._on_lease_trouble, on_lost=self._on_lost
        )

    def _on_renewed(self) -> None:
        if self._lease_trouble:
            self._lease_trouble = ""
            self._say("", "the lease of the app is held again")
        if "analyze" in self._children:
            self._children["analyze"].tell(RENEWED)

    def _on_lease_trouble(self, trouble: str) -> None:
        if not self._lease_trouble:
            self._say("", f"{trouble}; queries stop if that lasts for {UNSAFE_AFTER_S:.0f} s, and start again after it")
        self._lease_trouble = trouble

    def _on_lost(self, lost: LeaseLostError) -> None:
        if self._lost is not None and not self._lost.done():
            self._lost.set_result(lost)

    async def _watch_topics(self) -> None:
        """Tell the children of each topic that is no longer the one that the app made."""
        admin = admin_client(self._queue)
        seen: dict[str, str] = {}
        told: dict[str, str] = {}
        while True:
            await asyncio.sleep(_TOPICS_EVERY_S)
            try:
                there = await asyncio.to_thread(topic_ids, admin, list(self._ids)) if self._ids else {}
            except PenstockError:
                continue  # a queue that is away says nothing about its topics
            errors = identity_errors(self._ids, there)
            # Twice in a row: a broker of a cluster may be a moment behind.
            confirmed = {name: error for name, error in errors.items() if seen.get(name) == error}
            seen = errors
            for name, error in confirmed.items():
                if told.get(name) != error:
                    self._say("", error)
            if confirmed or told:
                for name in ("edge", "analyze"):
                    if name in self._children:
                        self._children[name].tell(topics_order(confirmed))
            told = confirmed

    async def _announce(self) -> None:
        for child in self._children.values():
            await child.is_ready.wait()
        self._say("", f"ready http://{self._options.edge.listen}")


def holder_of(data: Path, *, serves_queue: bool) -> Holder:
    """This run, as the lease of its app names it. The id of the data folder is made once, and kept in it."""
    file = data / "run" / "id"
    if not file.exists():
        write_private(file, uuid.uuid4().hex.encode())
    host = socket.gethostname()
    # A copy of the folder, at another place or on another machine, is another run.
    identity = f"{file.read_text()}@{host}:{data}"
    now_ms = time.time_ns() // 1_000_000
    return Holder(
        data=identity, host=host, pid=os.getpid(), since_ms=now_ms, folder=str(data), serves_queue=serves_queue
    )

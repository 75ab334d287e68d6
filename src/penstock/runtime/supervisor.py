"""`penstock run`: starts broker, edge and analyze, watches them, and starts again what ends."""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import socket
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from penstock.analyze.checkpoints import Checkpoint
from penstock.app import App
from penstock.client.lease import UNSAFE_AFTER_S, Holder, Lease, LeaseLostError, wanted_lease_topic
from penstock.client.topics import TopicProvider, look_at_queue, wanted_topics
from penstock.config import AnalyzeConfig, BrokerConfig, EdgeConfig
from penstock.errors import ConfigError, PenstockError
from penstock.guarantee import Queue
from penstock.loading import is_loading, load_app
from penstock.orders import RENEWED
from penstock.plan import Plan, plan_app
from penstock.run_spec import CHECKED_FIRST, LEASED, RunSpec, write_private, write_spec
from penstock.runtime.addresses import parse_address, read_addresses
from penstock.runtime.child import Child
from penstock.runtime.edge_guard import refuse_open_edge
from penstock.runtime.lease_keeper import LeaseKeeper
from penstock.runtime.plan_text import plan_lines, queue_words
from penstock.settings import load_config

Say = Callable[[str, str], None]
Answer = TypeVar("Answer")
Table = TypeVar("Table", BrokerConfig, EdgeConfig, AnalyzeConfig)

_FREE_WITHIN_S = 3.0


@dataclass(frozen=True)
class RunOptions:
    """How an app is run: everything but the app."""

    data: str = ".penstock"
    queue: str = ""  # addresses of a queue that runs already; empty: our own broker, started with the app
    adopt: tuple[str, ...] = ()  # topics of others that become the app's
    take_over: bool = False  # end another run of the app
    broker: BrokerConfig = field(default_factory=BrokerConfig)
    edge: EdgeConfig = field(default_factory=EdgeConfig)
    analyze: AnalyzeConfig = field(default_factory=AnalyzeConfig)


def run(
    app: App,
    *,
    data: str | None = None,
    port: int | None = None,
    queue: str = "",
    listen: str | None = None,
    adopt: Sequence[str] = (),
    take_over: bool = False,
) -> None:
    """Run an app from its own script until Ctrl-C; call it under `if __name__ == "__main__"`.

    `adopt` names topics that Penstock did not make and may change; `take_over` ends another run of the app.

    What is not given comes from penstock.toml or [tool.penstock], then from PENSTOCK_*, as for `penstock run`.
    """
    if is_loading():
        raise ConfigError("penstock.run was called while the app was loaded: put it under if __name__ == '__main__'")
    try:
        main = sys.modules["__main__"]
        file = getattr(main, "__file__", None)
        names = [name for name, value in vars(main).items() if value is app]
        if file is None or not names:
            raise ConfigError("penstock.run needs an App that is a global of a script, which its processes import")
        options = load_options({"data": data, "listen": listen}, port=port, queue=queue)
        options = replace(options, adopt=tuple(adopt), take_over=take_over)
        status = supervise(f"{file}:{names[0]}", options, print_line)
    except ConfigError as wrong:
        for fault in wrong.faults:
            sys.stderr.write(f"penstock: {fault}\n")
        status = 2
    except PenstockError as failed:
        sys.stderr.write(f"penstock: {failed}\n")
        status = 1
    if status:
        sys.exit(status)


def load_options(flags: Mapping[str, object], *, port: int | None, queue: str) -> RunOptions:
    """How to run here: the settings in force, then what was given; `flags` are the broker's, and `insecure` of both."""
    faults: list[str] = []

    def table(kind: type[Table], given: Mapping[str, object]) -> Table:
        try:
            return load_config(Path.cwd(), os.environ, given, kind)[0]
        except ConfigError as wrong:
            faults.extend(fault for fault in wrong.faults if fault not in faults)
            return kind()

    broker = table(BrokerConfig, flags)
    edge = table(EdgeConfig, {"insecure": flags.get("insecure")})
    analyze = table(AnalyzeConfig, {})
    if faults:
        raise ConfigError(*faults)
    if port is not None:
        edge = replace(edge, listen=f"{edge.listen.rpartition(':')[0]}:{port}")
    return RunOptions(data=broker.data, queue=queue, broker=broker, edge=edge, analyze=analyze)


def print_line(who: str, text: str) -> None:
    """One line of a run; what is not of a tier stands at the margin."""
    with suppress(OSError):  # whoever read it is gone: no reason to stop an app
        sys.stdout.write(f"{who:<8} {text}\n" if who else f"{text}\n")
        sys.stdout.flush()


def supervise(spec: str, options: RunOptions, say: Say) -> int:
    """Run the app that `spec` names until SIGINT or SIGTERM; ConfigError if it cannot be."""
    app = load_app(spec)
    kind = look_at_queue(options.queue) if options.queue else Queue()
    plan = plan_app(app, kind)
    data = Path(options.data).absolute()
    refuse_addresses(options)
    lock = _lock(data)
    try:
        options = replace(
            options, data=str(data), edge=replace(options.edge, listen=_settled("port", options.edge.listen))
        )
        queue = options.queue or _settled("listen", options.broker.listen)
        place, colon, variable = spec.partition(":")
        absolute = str(Path(place).absolute()) if place.endswith(".py") else place
        write_spec(
            RunSpec(
                app=absolute + colon + variable,
                data=str(data),
                queue=queue,
                kind=kind,
                edge=options.edge,
                analyze=options.analyze,
            ),
            data / "run" / "spec.json",
        )
        say("", f"{plan.app} on {queue_words(kind.kind, queue)}, data in {options.data}")
        for line in plan_lines(plan):
            say("", f"  {line}")
        return asyncio.run(_Supervisor(plan, options, queue, data, say).run())
    finally:
        os.close(lock)


def refuse_addresses(options: RunOptions) -> None:
    """ConfigError if an address makes no sense, or lets other machines in without a token."""
    if not options.queue:
        read_addresses(options.broker)
    refuse_open_edge(options.edge, parse_address("edge.listen", options.edge.listen)[0])


def have_run(plan: Plan, data: Path) -> bool:
    """Whether every query of the app has had a batch on this data: then Spark has found before that it can run."""
    return all(Checkpoint(data / "analyze" / "checkpoints", name).is_begun for name in plan.queries)


class _Supervisor:
    """The life of one run."""

    def __init__(self, plan: Plan, options: RunOptions, queue: str, data: Path, say: Say) -> None:
        self._plan = plan
        self._options = options
        self._queue = queue
        self._data = data
        self._say = say
        self._is_provided = False
        self._providing = asyncio.Lock()
        self._me = holder_of(data, serves_queue=not options.queue)
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
        edge = [*python, "penstock.runtime.edge", spec]
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
        command = [sys.executable, "-m", "penstock", "broker", "--data", data, "--listen", self._queue]
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
            await asyncio.gather(*keepers.values(), ready, return_exceptions=True)
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


def _lock(data: Path) -> int:
    """Only one run writes to a folder."""
    folder = data / "run"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"--data {data} cannot be written to ({error.strerror})") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise ConfigError(f"another penstock run uses {data}: stop it, or give another --data") from None
    return lock


def _settled(name: str, listen: str) -> str:
    """The address with a port that stays the same however often a child starts again; ConfigError if it is taken."""
    host, port = parse_address(name, listen)
    if port:
        _await_free(name, host, port)
        return listen
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    return f"[{host}]:{port}" if family == socket.AF_INET6 else f"{host}:{port}"


def _await_free(name: str, host: str, port: int) -> None:
    """Before anything starts; what a run that was killed held is free within a moment."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    deadline = time.monotonic() + _FREE_WITHIN_S
    while True:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                return probe.bind((host, port))
            except OSError as error:
                if time.monotonic() > deadline:
                    raise ConfigError(
                        f"cannot listen on {host}:{port} ({error.strerror}): choose another --{name}"
                    ) from None
        time.sleep(0.05)

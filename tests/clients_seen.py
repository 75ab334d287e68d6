"""Which clients a run saw: our brokers are asked after every test who called; docs/clients.md must agree."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException

import aiokafka  # type: ignore[import-untyped]  # ships no types
import pytest
from aiokafka.client import AIOKafkaClient  # type: ignore[import-untyped]

from penstock.drills.broker_process import BrokerProcess
from tools.client_table import PAGE, REPORT, Client, Report, faults_of, read_table

SEEN = "clients_seen"
_TOLD = re.compile(r'penstock_broker_clients_total\{software="(.+)",version="(.+)"\} (\d+)')
_NOT_A_CLIENT = {"unknown", "other", "compat"}  # says nothing, one too many, the bare connection of tests
_SELECTIVE = ("keyword", "markexpr", "deselect", "lf", "failedfirst", "ignore", "ignore_glob", "maxfail", "stepwise")


class ClientWatch:
    """Who has called the watched brokers since the last look."""

    def __init__(self) -> None:
        self._brokers: dict[str, Callable[[], str]] = {}
        self._counts: dict[str, dict[Client, int]] = {}
        self._silent: set[Client] = set()

    @contextmanager
    def watching(self, node: BrokerProcess) -> Iterator[None]:
        """While this lasts, who calls the broker is seen."""
        self._brokers[node.address] = lambda: node.get("/metrics")[1]
        yield
        del self._brokers[node.address]

    def on_silent(self, client: Client, address: str) -> None:
        """A client calls that tells no broker what it is."""
        if address in self._brokers:
            self._silent.add(client)

    def look(self) -> list[Client]:
        """Each client once."""
        found, self._silent = self._silent, set()
        for address, metrics in self._brokers.items():
            try:
                text = metrics()
            except (OSError, HTTPException):  # killed by a test, which may start it again
                continue
            before = self._counts.get(address, {})
            counts = {Client(name, version): int(count) for name, version, count in _TOLD.findall(text)}
            found |= {client for client, count in counts.items() if count != before.get(client)}
            self._counts[address] = counts
        return sorted(client for client in found if client.name not in _NOT_A_CLIENT)


_WATCH = ClientWatch()


@pytest.fixture(scope="session")
def client_watch() -> Iterator[ClientWatch]:
    """Watches the brokers whose callers belong into docs/clients.md."""
    bootstrap = AIOKafkaClient.bootstrap

    async def call(client: AIOKafkaClient) -> None:
        for host, port, _ in client.hosts:
            _WATCH.on_silent(Client("aiokafka", aiokafka.__version__), f"{host}:{port}")
        await bootstrap(client)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AIOKafkaClient, "bootstrap", call)
        yield _WATCH


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """In the worker: who called goes with the test's report."""
    called = _WATCH.look()
    broker = getattr(item, "callspec", None) and item.callspec.params.get("broker")  # type: ignore[attr-defined]
    if broker != "kafka" and called:
        item.user_properties.append((SEEN, [(*client, broker == "penstock") for client in called]))


class Collected:
    """In the process that pytest was started as: what all workers report."""

    def __init__(self, config: pytest.Config) -> None:
        self._option = config.option
        here = config.invocation_params.dir
        named = [(here / arg.partition("::")[0]).resolve() for arg in config.args if "::" in arg]
        self._parts = {path.relative_to(config.rootpath).as_posix() for path in named}
        self._files: defaultdict[str, set[tuple[str, str, bool]]] = defaultdict(set)
        self._not_whole: set[str] = set()
        self._faults: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        if not report.passed:
            self._not_whole.add(file)
        if report.when == "teardown":
            told = [entry for name, entries in report.user_properties if name == SEEN for entry in entries]
            self._files[file].update((name, version, on_both) for name, version, on_both in told)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        report = self._report()
        session.config.cache.set(REPORT, report)  # type: ignore[union-attr]  # nobody switches it off
        self._faults = faults_of(read_table(PAGE.read_text("utf-8")), report)
        if self._faults and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for fault in self._faults:
            terminalreporter.write_line(f"docs/clients.md: {fault} (make clients)", red=True)

    def _report(self) -> Report:
        """Of files that ran whole and passed; nothing can be said of the others."""
        if any(getattr(self._option, name, None) for name in _SELECTIVE):
            return {}
        whole = self._files.keys() - self._not_whole - self._parts
        return {file: sorted(self._files[file]) for file in sorted(whole)}


def pytest_configure(config: pytest.Config) -> None:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Collected(config), "clients-seen")

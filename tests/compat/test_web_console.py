"""A web console for Kafka opens on our broker: Quarkus's, which Maven fetches (make console)."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from asking.connection import Connection
from asking.members import ConfluentMember, poll_until, write
from asking.requests import create_topic
from playwright.sync_api import Page, sync_playwright

from penstock.drills.broker_process import BrokerProcess

CONSOLE = Path(__file__).with_name("console")
PAGES = "/q/dev-ui/io.quarkus.quarkus-kafka-client"
FLAGS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]
DEADLINE_S = 280.0
DEADLINE_MS = 60_000

pytestmark = [
    pytest.mark.skipif(not os.environ.get("WEB_CONSOLE"), reason="make console: it fetches 126 MB and compiles"),
    pytest.mark.timeout(600),
]


@pytest.fixture
def console(penstock_node: BrokerProcess, tmp_path: Path, need_tool: Callable[[str], str]) -> Iterator[str]:
    """The address of a console that looks at our broker."""
    folder = shutil.copytree(CONSOLE, tmp_path / "console")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    settings = [f"-Dquarkus.http.port={port}", f"-Dkafka.bootstrap.servers={penstock_node.address}", "-Ddebug=false"]
    settings.append("-Dquarkus.enforceBuildGoal=false")
    command = [need_tool("mvn"), "--batch-mode", "compile", "quarkus:dev", *settings]
    with (tmp_path / "console.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        _wait_until_served(port, process, tmp_path / "console.log")
        yield f"http://127.0.0.1:{port}{PAGES}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_until_served(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.request("GET", "/q/dev-ui/")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        assert time.monotonic() < deadline, log.read_text()[-3000:]


@pytest.fixture
def page(need_tool: Callable[[str], str]) -> Iterator[Page]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=need_tool("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 700})
        page.set_default_timeout(DEADLINE_MS)
        yield page
        browser.close()


def test_a_web_console_shows_topics_messages_groups_and_lag(
    console: str, page: Page, penstock_node: BrokerProcess, tmp_path: Path
) -> None:
    """As a person sees it: the topic and its count, its records, the group with its member and what it has not read."""
    address = penstock_node.address
    with Connection(address) as connection:
        create_topic(connection, "orders", 2)
    write(address, "orders", [f"order-{number}" for number in range(10)], partition=0)
    member = ConfluentMember(address, "shipping", ["orders"], client_id="reader")
    try:
        poll_until([member], lambda found: len(found) >= 10)
        member.commit()
        write(address, "orders", ["late-1", "late-2", "late-3"], partition=0)
        page.goto(f"{console}/topics")
        page.get_by_text("orders", exact=True).first.wait_for()
        page.get_by_text("13", exact=True).wait_for()
        page.screenshot(path=tmp_path / "topics.png")
        page.get_by_text("orders", exact=True).first.dblclick()
        page.get_by_text("late-3", exact=True).wait_for()
        page.screenshot(path=tmp_path / "messages.png")
        page.goto(f"{console}/consumer-groups")
        page.get_by_text("shipping", exact=True).wait_for()
        page.get_by_text("STABLE", exact=True).wait_for()
        page.get_by_text("3", exact=True).wait_for()
        page.screenshot(path=tmp_path / "groups.png")
        page.goto(f"{console}/nodes")
        page.get_by_text(address, exact=True).wait_for()
    finally:
        member.close()

"""A web console for Kafka opens on our broker: the one of Quarkus's development mode, looked at in Chromium."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from asking.connection import Connection
from asking.members import ConfluentMember, poll_until, write
from asking.requests import create_topic
from clients_seen import ClientWatch
from console.quarkus import console_on
from playwright.sync_api import Page, sync_playwright

from penstock.drills.broker_process import BrokerProcess

FLAGS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]
DEADLINE_MS = 120_000

pytestmark = pytest.mark.timeout(600)  # it starts a JVM, a browser and a broker


@pytest.fixture
def broker_alone(tmp_path: Path, client_watch: ClientWatch) -> Iterator[str]:
    """A broker with nothing in it but what the test writes: a person looks at the whole page."""
    with BrokerProcess(tmp_path / "data", tmp_path) as node, client_watch.watching(node):
        yield node.address


@pytest.fixture
def console(broker_alone: str, tmp_path: Path) -> Iterator[str]:
    """The address of a console that looks at it."""
    with console_on(broker_alone, tmp_path / "console") as address:
        yield address


@pytest.fixture
def page(need_tool: Callable[[str], str]) -> Iterator[Page]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=need_tool("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1400, "height": 700})
        page.set_default_timeout(DEADLINE_MS)
        yield page
        browser.close()


def test_a_web_console_shows_topics_messages_groups_and_lag(
    console: str, page: Page, broker_alone: str, tmp_path: Path
) -> None:
    """As a person sees it: the topic and its count, its records, the group with its member and what it has not read."""
    with Connection(broker_alone) as connection:
        create_topic(connection, "orders", 2)
    write(broker_alone, "orders", [f"order-{number}" for number in range(10)], partition=0)
    member = ConfluentMember(broker_alone, "shipping", ["orders"], client_id="reader")
    try:
        poll_until([member], lambda found: len(found) >= 10)
        member.commit()
        write(broker_alone, "orders", ["late-1", "late-2", "late-3"], partition=0)
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
        page.get_by_text(broker_alone, exact=True).wait_for()
    finally:
        member.close()

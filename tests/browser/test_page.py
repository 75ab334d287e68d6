"""The page at / in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, expect, sync_playwright

from penstock.drills.app_process import AppProcess

FLAGS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]
DEADLINE_MS = 60_000
SCRIPT = "<img src=x onerror=\"document.title='owned'\">"
APP = """
from penstock import App, sources

clicks = App("clicks")
seen = clicks.topic("seen", schema="id STRING NOT NULL, verdict STRING, n INT", key="id", identity="id",
                    example={"id": "a", "verdict": "approved", "n": 3})
clicks.ingest(sources.Http(), into=seen)
clicks.deliver(seen)
"""


@pytest.fixture
def app(tmp_path: Path) -> Iterator[AppProcess]:
    (tmp_path / "clicks.py").write_text(APP)
    with AppProcess(str(tmp_path / "clicks.py"), tmp_path) as running:
        yield running


@pytest.fixture
def page(app: AppProcess, need_tool: Callable[[str], str]) -> Iterator[Page]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=need_tool("chromium"), args=FLAGS)
        page = browser.new_page()
        page.set_default_timeout(DEADLINE_MS)
        page.goto(app.url)
        expect(page.locator("#link")).to_have_text("live", timeout=DEADLINE_MS)
        yield page
        browser.close()


def test_what_is_delivered_appears_with_its_counts_and_latency(app: AppProcess, page: Page) -> None:
    """Values are shown as text, whatever they are."""
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    producer = Producer({"bootstrap.servers": app.queue})
    for n in range(10):
        verdict = "approved" if n % 2 else "declined"
        producer.produce("seen", json.dumps({"id": SCRIPT, "verdict": verdict, "n": n}))
    producer.flush()
    expect(page.locator("#total")).to_have_text("10", timeout=DEADLINE_MS)
    expect(page.locator("#rows tr")).to_have_count(10)
    expect(page.locator("#rows td").filter(has_text=SCRIPT).first).to_be_visible()
    expect(page.locator(".chip").filter(has_text="declined")).to_contain_text("5")
    expect(page.locator("#median")).not_to_have_text("–")
    assert page.title() == "clicks"
    assert complaints == []


def test_an_event_can_be_sent_from_the_page(page: Page) -> None:
    """What it would take by curl is shown, and the answer."""
    expect(page.locator("#curl")).to_contain_text("/ingest/seen")
    page.click("#try")
    expect(page.locator("#answer")).to_contain_text("202 in", timeout=DEADLINE_MS)
    expect(page.locator("#rows tr")).to_have_count(1, timeout=DEADLINE_MS)


def test_the_page_comes_back_when_the_edge_does(app: AppProcess, page: Page) -> None:
    """It says that it is away, and then that it is live."""
    app.kill_part("edge")
    expect(page.locator("#link")).to_contain_text("connection lost", timeout=DEADLINE_MS)
    expect(page.locator("#link")).to_have_text("live", timeout=DEADLINE_MS)


def test_after_a_reload_the_latest_are_there_and_only_new_ones_count(app: AppProcess, page: Page) -> None:
    page.click("#try")
    expect(page.locator("#rows tr")).to_have_count(1, timeout=DEADLINE_MS)
    page.reload()
    expect(page.locator("#rows tr")).to_have_count(1, timeout=DEADLINE_MS)
    expect(page.locator("#total")).to_have_text("0")
    page.click("#try")
    expect(page.locator("#rows tr")).to_have_count(2, timeout=DEADLINE_MS)
    expect(page.locator("#total")).to_have_text("1")

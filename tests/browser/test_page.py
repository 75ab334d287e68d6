"""The page at / in a real browser."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from playwright.sync_api import Page, expect, sync_playwright

from penstock.drills.app_process import AppProcess
from penstock.events.headers import TIME

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
        why = f"{n}.50 spent, {n} times" if n % 2 else "abroad"
        producer.produce("seen", json.dumps({"id": SCRIPT, "verdict": verdict, "n": n, "why": why}))
    producer.flush()
    expect(page.locator("#total")).to_have_text("10", timeout=DEADLINE_MS)
    expect(page.locator("#rows tr")).to_have_count(10)
    expect(page.locator("#rows td").filter(has_text=SCRIPT).first).to_be_visible()
    expect(page.locator(".chip").filter(has_text="declined")).to_contain_text("5")
    expect(page.locator(".chip").filter(has_text="… spent, … times")).to_contain_text("5")
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


LATENCY = """async () => {
  const { Latencies, duration } = await import("/static/latency.js");
  const now = 1_800_000_000_000, found = new Latencies();
  for (let ms = 1; ms <= 100; ms++) found.take(now, now - ms);
  found.take(now, now - 5_458_095);
  found.take(now, 0);
  found.take(now, now + 5);
  const told = () => [found.total, found.older, found.rate(now), found.part(now, 0.5), found.part(now, 0.99)];
  const first = told(), later = now + 60_000;
  found.take(later, later - 60_000);
  found.take(later, later - 60_001);
  return {
    first,
    later: [found.total, found.older, found.rate(later), found.part(later, 0.5), found.dots(later).length],
    gone: [found.rate(later + 60_000), found.part(later + 60_000, 0.5)],
    units: [0, 12, 999, 999.6, 1_000, 1_234, 9_949, 9_950, 59_499, 59_500, 90_000, 5_458_095, 3_599_999, 5_458_095_000]
      .map(duration),
  };
}"""


def test_latency_is_of_the_last_minute_and_in_units_that_people_read(page: Page) -> None:
    """A result of an older event counts, and not in the latency. A sender whose clock is ahead has none."""
    told = page.evaluate(LATENCY)
    assert told["first"] == [103, 1, 10.3, 50, 99]
    assert told["later"] == [105, 2, 0.2, 60_000, 1]
    assert told["gone"] == [0, None]
    units = "0 ms, 12 ms, 999 ms, 1 s, 1 s, 1.2 s, 9.9 s, 10 s, 59 s, 1 min, 1.5 min, 1.5 h, 1 h, 1,516 h"
    assert ", ".join(told["units"]) == units


def test_results_of_older_events_are_counted_apart(app: AppProcess, page: Page) -> None:
    """After a restart queries catch up with events that waited for an hour and a half."""
    expect(page.locator("#older")).to_be_hidden()
    producer = Producer({"bootstrap.servers": app.queue})
    now_ms = time.time_ns() // 1_000_000
    for number, age_ms in enumerate([5_458_095] * 30 + [20] * 10):
        accepted = str(now_ms - age_ms).encode()
        producer.produce("seen", json.dumps({"id": str(number)}), headers=[(TIME, accepted)])
    producer.flush()
    expect(page.locator("#total")).to_have_text("40", timeout=DEADLINE_MS)
    expect(page.locator("#older")).to_contain_text("30 results of older events", timeout=DEADLINE_MS)
    for number in ("#median", "#tail"):
        expect(page.locator(number)).to_have_text(re.compile(r"^[\d.]+ m?s$"))
    expect(page.locator("body")).not_to_contain_text("5,458,095")


def test_the_page_says_why_the_app_is_not_ready(app: AppProcess, page: Page) -> None:
    """The stream of results may go on meanwhile, so that the link stays up."""
    expect(page.locator("#trouble")).to_be_hidden()
    admin = AdminClient({"bootstrap.servers": app.queue})
    admin.delete_topics(["seen"])["seen"].result(60)
    expect(page.locator("#trouble li").filter(has_text="the topic seen was deleted")).to_be_visible(timeout=DEADLINE_MS)

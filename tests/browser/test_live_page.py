"""EventSource and WebSocket of a real browser, on pages of our own origin and of a foreign one."""

from __future__ import annotations

import functools
import http.server
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.edge.live_stage import DEADLINE_S, Stage

FLAGS = ["--no-sandbox", "--headless", "--disable-gpu", "--disable-background-networking"]
DEADLINE_MS = DEADLINE_S * 1000

LISTEN = """path => {
  window.heard = []; window.notices = []; window.opened = 0; window.failed = 0;
  window.source = new EventSource(path);
  source.onopen = () => opened++;
  source.onerror = () => failed++;
  for (const name of ["decisions", "prices"])
    source.addEventListener(name, event => heard.push({last: event.lastEventId, ...JSON.parse(event.data)}));
  for (const name of ["start", "end", "gap", "dropped"])
    source.addEventListener("penstock." + name, event => notices.push(JSON.parse(event.data)));
}"""
SOCKET = """path => {
  window.heard = []; window.closed = null;
  window.socket = new WebSocket(path);
  socket.onmessage = message => heard.push(JSON.parse(message.data));
  socket.onclose = event => closed = {code: event.code, reason: event.reason};
}"""


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    built = Stage(tmp_path)
    yield built
    built.close()


@pytest.fixture(scope="module")
def browser(need_tool: Callable[[str], str]) -> Iterator[Browser]:
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=need_tool("chromium"), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, stage: Stage) -> Iterator[Page]:
    page = browser.new_page()
    page.goto(f"{stage.url}/health")
    yield page
    page.close()


@pytest.fixture
def foreign(browser: Browser, tmp_path: Path) -> Iterator[Page]:
    """A page that another server gave."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    (folder / "index.html").write_text("<title>elsewhere</title>")
    handler = functools.partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        yield page
        page.close()
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


def wait(page: Page, fact: str) -> None:
    page.wait_for_function(fact, timeout=DEADLINE_MS)


def offsets(page: Page, partition: int) -> list[int]:
    found: list[dict[str, Any]] = json.loads(page.evaluate("JSON.stringify(heard)"))
    return [each["offset"] for each in found if each["partition"] == partition]


def test_event_source_hears_what_happens(stage: Stage, page: Page) -> None:
    """By the name of the topic; every event has the id that resumes behind it."""
    page.evaluate(LISTEN, "/live/decisions")
    wait(page, "notices.length == 1")
    stage.send("decisions", 3, key=b"card-1")
    wait(page, "heard.length == 3")
    first = page.evaluate("heard[0]")
    assert (first["key"], first["value"]["n"], first["last"]) == ("card-1", 0, first["resume"])


def test_event_source_comes_back_by_itself_without_gap_or_repeat(stage: Stage, page: Page) -> None:
    """The edge killed and started again, twice: the browser sends Last-Event-ID, and gets what it missed."""
    page.evaluate(LISTEN, "/live/decisions")
    wait(page, "notices.length == 1")
    for round in (1, 2):
        stage.send("decisions", 10, partition=0)
        stage.send("decisions", 10, partition=1)
        stage.kill_edge()
        wait(page, f"failed >= {round}")
        stage.send("decisions", 10, partition=1)
        stage.start_edge()
        wait(page, f"heard.length == {30 * round}")
    stage.send("decisions", 1, partition=0)
    wait(page, "heard.length == 61")
    assert offsets(page, 0) == list(range(21))
    assert offsets(page, 1) == list(range(40))
    assert page.evaluate("opened") == 3


def test_event_source_comes_back_after_a_clean_stop(stage: Stage, page: Page) -> None:
    """It hears the goodbye, tries again until the edge is there, and goes on."""
    page.evaluate(LISTEN, "/live/decisions")
    wait(page, "notices.length == 1")
    stage.send("decisions", 1)
    wait(page, "heard.length == 1")
    assert stage.stop_edge() == 0
    wait(page, "notices.some(notice => notice.event == 'penstock.end' && notice.reason == 'stopping')")
    stage.send("decisions", 2)
    stage.start_edge()
    wait(page, "heard.length == 3")
    assert offsets(page, 0) == [0, 1, 2]


def test_a_web_socket_hears_the_same(stage: Stage, page: Page) -> None:
    """The same envelope, from the beginning on, with the start before it."""
    stage.send("decisions", 2)
    page.evaluate(SOCKET, f"ws://127.0.0.1:{stage.port}/live/decisions?from=beginning")
    wait(page, "heard.length == 3")
    assert page.evaluate("heard.map(each => each.event || each.offset)") == ["penstock.start", 0, 1]


def test_a_foreign_page_hears_nothing(stage: Stage, foreign: Page) -> None:
    """Neither by EventSource nor by WebSocket, which no browser forbids by itself."""
    stage.send("decisions", 1)
    foreign.evaluate(LISTEN, f"{stage.url}/live/decisions?from=beginning")
    wait(foreign, "failed >= 1 && source.readyState == EventSource.CLOSED")
    assert foreign.evaluate("heard.length + notices.length") == 0
    foreign.evaluate(SOCKET, f"ws://127.0.0.1:{stage.port}/live/decisions?from=beginning")
    wait(foreign, "closed != null")
    assert foreign.evaluate("heard.length") == 0


def test_a_foreign_page_that_is_named_hears(tmp_path: Path, foreign: Page) -> None:
    """By WebSocket, EventSource and fetch, also with a header that needs a preflight."""
    allowed = Stage(tmp_path, origins=foreign.evaluate("location.origin"))
    try:
        foreign.evaluate(SOCKET, f"ws://127.0.0.1:{allowed.port}/live/decisions")
        wait(foreign, "heard.length == 1")
        foreign.evaluate(LISTEN, f"{allowed.url}/live/decisions")
        wait(foreign, "notices.length == 1")
        read = "path => fetch(path, {headers: {Authorization: 'Bearer none'}}).then(answer => answer.status)"
        assert foreign.evaluate(read, f"{allowed.url}/health") == 200
    finally:
        allowed.close()

"""Who may talk to a real edge: token, Host, Origin; and what every answer carries."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from penstock.config.edge import EdgeConfig
from penstock.process.run_spec_file import read_spec, write_spec
from tests.edge.edge_stage import EdgeStage

TOKEN = "canary-7f3a"
EVENT = {"id": "guarded"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EdgeStage]:
    built = EdgeStage(
        tmp_path_factory.mktemp("guarded"), token=TOKEN, hosts="shop.example", origins="https://pages.example"
    )
    yield built
    built.close()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_without_the_token_nothing_is_told_or_changed(guarded: EdgeStage) -> None:
    """Every path but /health, /ready and the files of the page; a wrong token waits, and is counted."""
    before = time.monotonic()
    for headers in ({}, bearer("wrong"), bearer(TOKEN + "x"), {"Authorization": f"Basic {TOKEN}"}):
        answer = guarded.ask("POST", "/ingest/purchases", EVENT, headers)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
    assert time.monotonic() - before >= 4 * 0.5
    for path in ("/metrics", "/", "/live/decisions", "/results/decide/x", "/ingest/purchases?token=wrong"):
        assert guarded.ask("GET", path).status == 401
    assert guarded.get("/health").status == guarded.get("/ready").status == 200
    assert guarded.get("/static/page.js").status == 200
    metrics = guarded.ask("GET", "/metrics", headers=bearer(TOKEN)).json
    assert 'penstock_edge_guard_refused_total{reason="token"} 9' in metrics
    assert not guarded.stored("purchases")


def test_with_the_token_as_header_or_parameter_the_door_is_open(guarded: EdgeStage) -> None:
    assert guarded.ask("POST", "/ingest/purchases", EVENT, bearer(TOKEN)).status == 202
    assert guarded.ask("POST", f"/ingest/purchases?token={TOKEN}", EVENT).status == 202


def test_the_token_is_in_no_log_and_no_process_title(guarded: EdgeStage) -> None:
    guarded.ask("GET", f"/nowhere?token={TOKEN}")
    assert TOKEN not in guarded.said
    titles = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.exists()]
    assert not [title for title in titles if b"penstock.edge" in title and TOKEN.encode() in title]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 202), ("127.0.0.1:1", 202), ("[::1]:8080", 202), ("SHOP.example", 202), ("shop.example:80", 202),
        ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("", 421), ("[::2]", 421), ("localhost.", 421),
    ],
)  # fmt: skip
def test_only_our_own_hosts_are_served(guarded: EdgeStage, host: str, status: int) -> None:
    """A name that an attacker points at this machine (DNS rebinding) is none of ours."""
    assert guarded.ask("POST", "/ingest/purchases", EVENT, {**bearer(TOKEN), "Host": host}).status == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://127.0.0.1:{port}", 202), ("https://pages.example", 202), ("https://evil.example", 403),
        ("http://127.0.0.1:1", 403), ("null", 403), ("https://pages.example.evil", 403),
    ],
)  # fmt: skip
def test_pages_of_foreign_origins_may_not_talk_to_us(guarded: EdgeStage, origin: str, status: int) -> None:
    headers = {**bearer(TOKEN), "Origin": origin.format(port=guarded.port)}
    answer = guarded.ask("POST", "/ingest/purchases", EVENT, headers)
    assert answer.status == status
    preflight = guarded.ask("OPTIONS", "/ingest/purchases", None, {**headers, "Access-Control-Request-Method": "POST"})
    if origin == "https://pages.example":
        return
    assert preflight.status in (403, 405)
    for each in (answer, preflight):
        assert not [name for name in each.headers if name.startswith("access-control-")]


def test_a_page_of_a_named_origin_may_ask_and_read(guarded: EdgeStage) -> None:
    """The preflight comes without a token; the request needs it, and what it is refused with can be read as well."""
    origin = {"Origin": "https://pages.example"}
    wants = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, ce-id, x-other,content-type",
    }
    preflight = guarded.ask("OPTIONS", "/ingest/purchases", None, origin | wants)
    assert preflight.status == 204
    assert preflight.headers["access-control-allow-origin"] == "https://pages.example"
    assert preflight.headers["access-control-allow-methods"] == "GET, POST"
    assert preflight.headers["access-control-allow-headers"] == "authorization, ce-id, content-type"
    assert preflight.headers["vary"] == "Origin"
    for token, status in ((TOKEN, 202), ("wrong", 401)):
        answer = guarded.ask("POST", "/ingest/purchases", EVENT, origin | bearer(token))
        assert answer.status == status
        assert answer.headers["access-control-allow-origin"] == "https://pages.example"
        assert answer.headers["vary"] == "Origin"
    other = guarded.ask("OPTIONS", "/ingest/purchases", None, wants | bearer(TOKEN) | {"Host": "evil.example"} | origin)
    assert other.status == 421


def test_a_websocket_from_a_foreign_origin_is_refused(guarded: EdgeStage) -> None:
    with socket.create_connection(("127.0.0.1", guarded.port), timeout=60) as client:
        client.sendall(
            f"GET /live/decisions?token={TOKEN} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
            "Origin: https://evil.example\r\n\r\n".encode()
        )
        assert client.recv(1000).startswith(b"HTTP/1.1 403")


def test_answers_carry_what_keeps_browsers_safe(guarded: EdgeStage) -> None:
    page = guarded.ask("GET", "/", headers=bearer(TOKEN))
    assert page.status == 200
    assert "default-src 'self'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"
    assert page.headers["referrer-policy"] == "no-referrer"
    for answer in (page, guarded.get("/health"), guarded.ask("POST", "/ingest/purchases", EVENT, bearer(TOKEN))):
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_beyond_loopback_without_a_token_is_refused_before_the_start(guarded: EdgeStage, tmp_path: Path) -> None:
    """Exit status 2 and a sentence; the supervisor refuses it too, but an edge may be started alone."""
    spec = read_spec(guarded.spec)
    open_to_all = msgspec.structs.replace(spec, edge=EdgeConfig(listen="0.0.0.0:0"))
    write_spec(open_to_all, tmp_path / "spec.json")
    command = [sys.executable, "-m", "penstock.edge", str(tmp_path / "spec.json")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as edge:
        assert edge.wait(60) == 2
        assert edge.stderr is not None
        assert b"token" in edge.stderr.read()

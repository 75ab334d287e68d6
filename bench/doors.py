"""The doors in and out: events by HTTP, a waiting request, many live clients."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench.boundaries import commit_times
from bench.child import ROOT, run_child
from bench.path_apps import READS, WRITES
from bench.path_events import PARTITIONS, card_of, event
from bench.path_run import our_app, our_checkpoint
from bench.scene import FSYNC, OURS, Scene
from penstock.drills.app_process import AppProcess
from penstock.errors import PenstockError
from penstock.free_port import free_port

NOTHING = "nothing"
CONNECTIONS = 64
NDJSON_LINES = 900  # an argument of a process has at most 128 KiB
NDJSON_CONNECTIONS = 4
SSE_CLIENTS, SSE_RATE = 1_000, 10
WAIT_RATE = 100
_EVENT = event(1, 0).replace(card_of(1), b"card-{n}").decode()  # {n} is a number of its own in each request


@dataclass(frozen=True)
class HttpTrial:
    """One event a request, 64 connections, each sends again when it was answered; `side` may be NOTHING."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`rate` in requests/s, `p50` and `p99` in ms."""
        seconds = scene.pace.http_s
        with self._served(scene) as address:
            _post(address, _EVENT, CONNECTIONS, seconds / 2, "application/json")
            told = _post(address, _EVENT, CONNECTIONS, seconds, "application/json")
        return {"rate": told["requests_per_s"], "p50": told["p50_ms"], "p99": told["p99_ms"]}

    @contextmanager
    def _served(self, scene: Scene) -> Iterator[str]:
        if self.side == OURS:
            with our_app(scene, "collecting") as app:
                yield f"127.0.0.1:{app.port}"
            return
        port = free_port()
        command = [sys.executable, "-m", "bench.nothing_server", str(port)]
        server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            if server.stdout is None or server.stdout.readline() != "ready\n":
                raise PenstockError("the server that does nothing did not start")
            yield f"127.0.0.1:{port}"
        finally:
            server.kill()
            server.communicate()


@dataclass(frozen=True)
class NdjsonTrial:
    """Bodies of 900 lines on four connections; the peer is confluent-kafka alone on our broker, same headers."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`rate` in events/s."""
        if self.side != OURS:
            with scene.topic(OURS, FSYNC, PARTITIONS) as (queue, topic):
                events = int(scene.pace.http_s * 100_000)
                return {"rate": float(run_child("bench.fill", queue, topic, events, "headers")["rate"])}
        body = "".join(event(number, 0).decode() + "\n" for number in range(NDJSON_LINES))
        with our_app(scene, "collecting") as app:
            address, kind = f"127.0.0.1:{app.port}", "application/x-ndjson"
            _post(address, body, NDJSON_CONNECTIONS, scene.pace.http_s / 2, kind)
            told = _post(address, body, NDJSON_CONNECTIONS, scene.pace.http_s, kind)
        return {"rate": told["requests_per_s"] * NDJSON_LINES}


@dataclass(frozen=True)
class WaitTrial:
    """POST with ?wait= at 100 requests a second, answered by a real-time query that decides each event."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`p50`, `p99`, `p999` in ms over everything, and how many commits were in it."""
        with our_app(scene, "deciding") as app:
            path = f"/ingest/{READS}?wait=decide"
            _wait(app, path, scene.pace.wait_s / 3)
            told = _wait(app, path, scene.pace.wait_s)
            commits = commit_times(our_checkpoint(app, "decide"))
        boundaries = sum(told["began_ns"] <= commit <= told["ended_ns"] for commit in commits)
        return {name: told[name] for name in ("p50", "p99", "p999", "max")} | {"boundaries": float(boundaries)}


@dataclass(frozen=True)
class SseTrial:
    """1,000 SSE clients of one topic in one process, 10 messages a second to all of them."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`p50`, `p99` in ms; `mib_before` with all clients connected, `mib_after` the load, of the edge."""
        with our_app(scene, "pushing") as app:
            told = run_child(
                "bench.sse_load",
                *("--queue", app.queue, "--url", f"{app.url}/live/{WRITES}", "--topic", WRITES),
                *("--clients", SSE_CLIENTS, "--rate", SSE_RATE, "--seconds", scene.pace.sse_s),
                *("--pid", app.parts()["edge"]),
            )
        if told["received"] != told["expected"]:
            raise PenstockError(f"{told['received']} of {told['expected']} messages came")
        return {
            **{name: told[f"{name}_ms"] for name in ("p50", "p99", "p99.9", "max")},
            "mib_before": told["server_mib_before"],
            "mib_after": told["server_mib_after"],
            "growth": told["server_mib_after"] - told["server_mib_before"],
        }


def _post(address: str, body: str, connections: int, seconds: float, kind: str) -> dict[str, Any]:
    told: dict[str, Any] = run_child(
        "bench.http_load",
        *(address, f"/ingest/{READS}", body, "--kind", kind),
        *("--connections", connections, "--seconds", seconds),
    )
    if set(told["statuses"]) - {"200", "202"}:
        raise PenstockError(f"not everything was accepted: {told['statuses']}")
    return told


def _wait(app: AppProcess, path: str, seconds: float) -> dict[str, float]:
    told: dict[str, float] = run_child("bench.wait_load", f"127.0.0.1:{app.port}", path, WAIT_RATE, seconds)
    return told

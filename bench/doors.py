"""The doors in and out: events by HTTP, a waiting request, many live clients."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.boundaries import commit_times
from bench.child import ROOT, run_child
from bench.path_apps import READS, WRITES
from bench.path_events import CARDS, PARTITIONS, event
from bench.path_run import our_app, our_checkpoint
from bench.process import cpu_seconds
from bench.scene import FSYNC, OURS, Scene
from bench.wrk import post, write_bodies
from penstock.drills.app_process import AppProcess
from penstock.errors import PenstockError
from penstock.process.free_port import free_port

NOTHING = "nothing"
CONNECTIONS = 64
NDJSON_LINES = 900
NDJSON_CONNECTIONS = 4
SSE_CLIENTS, SSE_RATE = 1_000, 10
WAIT_RATE = 100


@dataclass(frozen=True)
class HttpTrial:
    """One event a request, 64 connections, each sends again when it was answered; `side` may be NOTHING."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`rate` in requests/s, `p50` and `p99` in ms, and processors that each process used."""
        bodies = [event(number, 0) for number in range(CARDS)]
        with self._served(scene) as (address, parts):
            return _post(scene, address, parts, "application/json", bodies, CONNECTIONS)

    @contextmanager
    def _served(self, scene: Scene) -> Iterator[tuple[str, dict[str, int]]]:
        if self.side == OURS:
            with our_app(scene, "collecting") as app:
                yield f"127.0.0.1:{app.port}", app.parts()
            return
        port = free_port()
        command = [sys.executable, "-m", "bench.nothing_server", str(port)]
        server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        try:
            if server.stdout is None or server.stdout.readline() != "ready\n":
                raise PenstockError("the server that does nothing did not start")
            yield f"127.0.0.1:{port}", {"server": server.pid}
        finally:
            server.kill()
            server.communicate()


@dataclass(frozen=True)
class NdjsonTrial:
    """Bodies of 900 lines on four connections; the peer is confluent-kafka alone on our broker, same headers."""

    side: str

    def run(self, scene: Scene) -> dict[str, float]:
        """`rate` in events/s, and processors that each process used."""
        if self.side != OURS:
            with scene.topic(OURS, FSYNC, PARTITIONS) as (queue, topic):
                events = int(scene.pace.http_s * 100_000)
                return {"rate": float(run_child("bench.fill", queue, topic, events, "headers")["rate"])}
        body = b"\n".join(event(number, 0) for number in range(NDJSON_LINES))
        with our_app(scene, "collecting") as app:
            address, kind = f"127.0.0.1:{app.port}", "application/x-ndjson"
            told = _post(scene, address, app.parts(), kind, [body], NDJSON_CONNECTIONS)
        return told | {"rate": told["rate"] * NDJSON_LINES}


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


def _post(
    scene: Scene, address: str, parts: dict[str, int], kind: str, bodies: list[bytes], connections: int
) -> dict[str, float]:
    url, seconds = f"http://{address}/ingest/{READS}", scene.pace.http_s
    file = write_bodies(scene.folder / "bodies", bodies)
    post(url, file, kind, connections, seconds / 2)
    before, began = _processor_s(parts), time.monotonic()
    told = post(url, file, kind, connections, seconds)
    took = time.monotonic() - began
    used = {f"{name}_cores": (now - before[name]) / took for name, now in _processor_s(parts).items()}
    return {"rate": told["requests_per_s"], "p50": told["p50_ms"], "p99": told["p99_ms"], **used}


def _processor_s(parts: dict[str, int]) -> dict[str, float]:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)  # of the children that ended since, only wrk runs meanwhile
    return {"wrk": ended.ru_utime + ended.ru_stime} | {name: cpu_seconds(pid) for name, pid in parts.items()}


def _wait(app: AppProcess, path: str, seconds: float) -> dict[str, float]:
    told: dict[str, float] = run_child("bench.wait_load", f"127.0.0.1:{app.port}", path, WAIT_RATE, seconds)
    return told

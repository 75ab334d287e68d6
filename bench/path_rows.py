"""The rows of the whole path: from an event to whoever waits for what comes of it."""

from __future__ import annotations

from bench.catch_up import CatchUpTrial
from bench.doors import NOTHING, HttpTrial, NdjsonTrial, SseTrial, WaitTrial
from bench.first_result import FirstResultTrial
from bench.pipeline import RATES, PipelineTrial
from bench.row import PATH, Row
from bench.scene import FSYNC, KAFKA, NO_FSYNC, OURS

PLAIN = "plain PySpark on Kafka"
PLAIN_FSYNC = "plain PySpark on Kafka with fsync"
_QUERIES = {"filter": "filter + project", "count": "count by key"}


def _pipeline(query: str, rate: int) -> list[Row]:
    ours = PipelineTrial(OURS, query, FSYNC)
    kafka, kafka_fsync = PipelineTrial(KAFKA, query, NO_FSYNC), PipelineTrial(KAFKA, query, FSYNC)
    what = f"produce to result read, {_QUERIES[query]}, real time, {rate:,}/s"

    def row(name: str, title: str, value: str, goal: float | None, fsync: bool = False) -> Row:
        peer, label = (kafka_fsync, PLAIN_FSYNC) if fsync else (kafka, PLAIN)
        return Row(
            f"pipeline-{query}-{rate}-{name}", f"{what}, {title}", "ms", ours, peer, f"{rate}_{value}",
            more_is_better=False, goal=goal, section=PATH, peer=label,
        )  # fmt: skip

    return [
        row("p50", "p50 inside batches", "in_p50", 1.4),
        row("p50-fsync", "p50 inside batches", "in_p50", 1.0, fsync=True),
        row("p99", "p99 inside batches", "in_p99", 1.2),
        row("p99-fsync", "p99 inside batches", "in_p99", None, fsync=True),
        row("across-p99", "p99 across ten commits", "p99", 1.2),
        row("across-p99.9", "p99.9 across ten commits", "p999", 1.2),
    ]


def _alone(name: str, title: str, unit: str, trial: WaitTrial | SseTrial, value: str, goal: float | None) -> Row:
    return Row(name, title, unit, trial, None, value, more_is_better=False, goal=goal, section=PATH, peer="")


def _doors() -> list[Row]:
    wait, sse = WaitTrial(OURS), SseTrial(OURS)
    http, nothing = HttpTrial(OURS), HttpTrial(NOTHING)
    clients = "1,000 SSE clients, 10 messages/s to all"
    return [
        _alone("wait-100-p50", "request with ?wait=, 100/s, p50 with commits", "ms", wait, "p50", 15.0),
        _alone("wait-100-p99", "request with ?wait=, 100/s, p99 with commits", "ms", wait, "p99", None),
        Row("http-events", "one event a request, 64 connections, fsync before 202", "requests/s", http, nothing,
            "rate", goal=0.4, section=PATH, peer="a Starlette handler that does nothing"),
        Row("http-events-p99", "the same, p99", "ms", http, nothing, "p99", more_is_better=False, section=PATH,
            peer="a Starlette handler that does nothing"),
        Row("http-ndjson", "NDJSON, four connections, fsync before the answer", "events/s", NdjsonTrial(OURS),
            NdjsonTrial("producer"), "rate", goal=60_000, section=PATH, is_goal_a_value=True,
            peer="a confluent-kafka producer alone"),
        _alone("sse-1000-p50", f"{clients}, p50 from produce to client", "ms", sse, "p50", None),
        _alone("sse-1000-p99", f"{clients}, p99 from produce to client", "ms", sse, "p99", 100.0),
        _alone("sse-1000-memory", f"{clients}: memory of the edge with all connected", "MiB", sse, "mib_before", None),
        _alone("sse-1000-growth", f"{clients}: growth of it by the load", "MiB", sse, "growth", 5.0),
    ]  # fmt: skip


def _spark() -> list[Row]:
    catch_up, plain = CatchUpTrial(OURS), CatchUpTrial(KAFKA)
    first, plain_first = FirstResultTrial(OURS), FirstResultTrial(KAFKA)
    what = "catch-up of 5 M events of 140 B, parse + filter + count"
    return [
        Row("catch-up", what, "events/s", catch_up, plain, "rate", goal=1.0, section=PATH, peer=PLAIN),
        Row("catch-up-whole", f"{what}, from the start of the process", "s", catch_up, plain, "whole_s",
            more_is_better=False, section=PATH, peer=PLAIN),
        Row("first-result", "start to first result read", "s", first, plain_first, "seconds", more_is_better=False,
            goal=0.5, section=PATH, peer=PLAIN),
        Row("first-result-ever", "the same without the archive of Spark's classes: the first start on a machine", "s",
            FirstResultTrial(OURS, with_archive=False), plain_first, "seconds", more_is_better=False, section=PATH,
            peer=PLAIN),
    ]  # fmt: skip


PATH_ROWS: list[Row] = [
    *(row for query in _QUERIES for rate in RATES for row in _pipeline(query, rate)),
    *_doors(),
    *_spark(),
]

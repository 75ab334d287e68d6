"""How long each measurement runs."""

from __future__ import annotations

from dataclasses import dataclass

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Pace:
    """The lengths of a run; the defaults are those of the published table."""

    rounds: int = 3
    warm_rounds: int = 1
    kafka_warm_records: int = 6_000_000
    kafka_warm_requests_s: float = 15.0
    produce_bytes: int = 500 * MEGABYTE
    produce_bytes_fsync_many: int = 100 * MEGABYTE
    consume_bytes: int = 500 * MEGABYTE
    requests_warm_s: float = 1.0
    requests_s: float = 5.0
    latency_warm_s: float = 3.0
    latency_s: float = 20.0
    backlog_bytes: int = 5_000 * MEGABYTE
    rebalances: int = 10
    transactions_s: float = 10.0
    transactional_ids: int = 10_000
    core_requests: int = 300_000
    partitions: int = 10_000
    idle_s: float = 10.0
    commit_s: int = 10
    boundaries: int = 10
    pipeline_warm_s: float = 20.0
    pipeline_short_s: float = 25.0
    catch_up_events: int = 5_000_000
    http_s: float = 10.0
    wait_s: float = 60.0
    sse_s: float = 20.0


QUICK = Pace(
    rounds=1,
    warm_rounds=0,
    kafka_warm_records=1_000_000,
    kafka_warm_requests_s=3.0,
    produce_bytes=100 * MEGABYTE,
    produce_bytes_fsync_many=20 * MEGABYTE,
    consume_bytes=100 * MEGABYTE,
    requests_warm_s=0.5,
    requests_s=2.0,
    latency_warm_s=1.0,
    latency_s=4.0,
    backlog_bytes=300 * MEGABYTE,
    rebalances=3,
    transactions_s=3.0,
    transactional_ids=500,
    core_requests=30_000,
    idle_s=2.0,
    commit_s=5,
    boundaries=1,
    pipeline_warm_s=8.0,
    pipeline_short_s=6.0,
    catch_up_events=200_000,
    http_s=2.0,
    wait_s=6.0,
    sse_s=3.0,
)

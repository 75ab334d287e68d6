"""Settings of the edge, with their limits and the reason of each."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.config.setting import KIB, MIB, SECOND_MS, setting


@dataclass(frozen=True, slots=True)
class EdgeConfig:
    """Settings of the doors in and out, table [edge] of penstock.toml."""

    listen: str = setting("127.0.0.1:8080", "HOST:PORT for HTTP and WebSocket; loopback unless there is a token")
    token: str = setting("", "who does not send it as 'Authorization: Bearer' or ?token= is refused; empty: no token")
    insecure: bool = setting(False, "allow listening beyond loopback although there is no token")
    hosts: str = setting("", "Host headers answered besides localhost and the address listened on, with commas")
    origins: str = setting("", "web origins whose pages may talk to us besides our own, with commas")
    event_bytes_max: int = setting(900 * KIB, "largest event: below the queue's own limit for a batch", at_least=KIB)
    body_bytes_max: int = setting(16 * MIB, "largest body that is taken as a whole (all or nothing)", at_least=KIB)
    body_events_max: int = setting(10_000, "events in a body that is taken as a whole", at_least=1)
    inflight_bytes_max: int = setting(
        64 * MIB, "events not yet stored, in all, before 503 with Retry-After", at_least=MIB
    )
    connections_max: int = setting(10_000, "bounds file handles and per-connection memory", at_least=1)
    request_deadline_ms: int = setting(
        30 * SECOND_MS,
        "a request must be whole by then (slow loris); NDJSON must bring a line and 1 KiB/s in each such time",
        at_least=100,
    )
    store_deadline_ms: int = setting(30 * SECOND_MS, "how long the queue may be away before 503", at_least=100)
    wait_ms_max: int = setting(30 * SECOND_MS, "longest ?wait= for a result", at_least=1)
    waits_max: int = setting(10_000, "requests that wait for a result at once", at_least=1)
    results_max: int = setting(100_000, "latest results remembered for who asks again, for each query", at_least=1)
    lookups_max: int = setting(16, "GET /results that search a topic at once: each has a reader of its own", at_least=1)
    stalled_after_ms: int = setting(
        120 * SECOND_MS,
        "a query that has input and moves no further for this long, and for one more commit, makes /ready red; a full "
        "micro-batch may take a minute",
        at_least=1000,
    )
    live_clients_max: int = setting(5_000, "SSE and WebSocket clients at once", at_least=1)
    live_catch_ups_max: int = setting(16, "clients that read history at once: each has a reader of its own", at_least=1)
    live_catch_up_wait_ms: int = setting(10 * SECOND_MS, "longest wait for one of those readers before 503", at_least=0)
    live_backlog_bytes_max: int = setting(
        8 * MIB, "messages that wait for one client, besides the count its delivery declares", at_least=KIB
    )
    live_recent_max: int = setting(
        1_000, "latest messages of each delivered topic kept for clients that come back after a moment", at_least=0
    )
    live_recent_bytes_max: int = setting(4 * MIB, "the same in bytes of keys and values", at_least=0)
    live_beat_ms: int = setting(
        15 * SECOND_MS, "a silent stream says so this often: proxies close idle ones", at_least=10
    )
    live_stall_ms: int = setting(
        30 * SECOND_MS, "who reads history must take 64 KiB in this time, or makes room for others", at_least=10
    )
    live_goodbye_ms: int = setting(
        5 * SECOND_MS, "a client too slow has this long to hear why it is closed", at_least=1
    )

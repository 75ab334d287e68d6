"""Settings of the broker, with their limits and the reason of each."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.config.setting import DAY_MS, GIB, KIB, MIB, SECOND_MS, setting


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Settings of one queue node, table [broker] of penstock.toml."""

    data: str = setting(".penstock", "everything Penstock writes is below this folder")
    listen: str = setting("127.0.0.1:9092", "HOST:PORT for Kafka clients; loopback, since there is no authentication")
    advertise: str = setting("", "HOST:PORT told to clients when it is not the address listened on")
    metrics: str = setting("", "HOST:PORT for GET /metrics, /health and /ready; empty: no such listener")
    insecure: bool = setting(False, "allow listening beyond loopback although anybody could then read and write")
    auto_create_topics: bool = setting(True, "a client that asks for a topic gets it, as with Kafka's default")
    default_partitions: int = setting(1, "partitions of a topic created without a count", at_least=1, at_most=10_000)

    topics_max: int = setting(10_000, "bounds the catalog in memory", at_least=1)
    partitions_max: int = setting(20_000, "bounds open logs and their indexes in memory", at_least=1)
    connections_max: int = setting(10_000, "bounds file handles and per-connection memory", at_least=1)
    http_connections_max: int = setting(
        64, "of those who ask for metrics or health: each asks once and is closed, so few are enough", at_least=1
    )
    frame_bytes_max: int = setting(100 * MIB, "Kafka's own limit for one request", at_least=KIB, at_most=GIB)
    frame_bytes_max_first: int = setting(
        64 * KIB, "a stranger gets little memory before its first request made sense", at_least=KIB
    )
    request_bytes_max: int = setting(
        4 * MIB, "largest request but Produce: decoded, it takes many times its size", at_least=KIB
    )
    inflight_bytes_max_connection: int = setting(
        8 * MIB,
        "unanswered requests and unsent replies of one client before it is no longer read",
        at_least=KIB,
    )
    inflight_bytes_max: int = setting(
        512 * MIB, "the same in all: past it fetches are answered empty, and who holds much is not read", at_least=MIB
    )
    fetch_bytes_max: int = setting(55 * MIB, "Kafka's limit for one fetch reply", at_least=KIB)
    fetch_bytes_step: int = setting(
        MIB, "read for one fetch at a time: everybody else waits so long; who wants more asks again", at_least=KIB
    )
    loads_max: int = setting(
        16, "fetches of old records for which the disk reads at once; the next wait in the order they came", at_least=1
    )
    opened_bytes_max: int = setting(
        128 * MIB,
        "a compressed batch that opens to more is refused; the broker opens each batch to check its records",
        at_least=MIB,
        at_most=GIB,
    )
    opened_on_loop_bytes_max: int = setting(
        8 * MIB,
        "compressed batches opened by the event loop in one step, 10 to 30 ms; threads open the rest",
        at_least=KIB,
        at_most=GIB,
    )
    openings_max: int = setting(
        2,
        "threads that open batches: each takes up to twice opened_bytes_max of memory",
        at_least=1,
        at_most=64,
    )
    metadata_queue_max: int = setting(1_000, "topic changes waiting for the one being written", at_least=1)
    request_deadline_ms: int = setting(30 * SECOND_MS, "a frame begun must be whole by then (slow loris)", at_least=100)
    reply_deadline_ms: int = setting(
        60 * SECOND_MS, "a client that takes nothing of its replies for this long is closed (slow reader)", at_least=100
    )
    stop_deadline_ms: int = setting(
        30 * SECOND_MS, "a clean stop waits this long for syncs and for clients to take their replies", at_least=100
    )
    idle_ms_max: int = setting(600 * SECOND_MS, "a connection silent this long is closed, as Kafka does", at_least=1000)
    compiled: bool = setting(
        True, "the modules that 'penstock compile' has made are used; off: their sources, to debug or to compare"
    )
    sync_in_kernel: bool = setting(
        True, "Linux syncs dirty files by itself, 64 at once; off: threads do, where a tracer must see every call"
    )
    sync_shares_flush: bool = setting(
        True, "files synced at once share one flush of the disk's cache, on ext4 (ADR 13); off: a flush for each"
    )
    sync_threads: int = setting(
        8,
        "syncs run at once by threads: new files, and all where the kernel does not sync by itself",
        at_least=1,
        at_most=64,
    )
    sync_inline_us_max: int = setting(
        2_000,
        "while syncs take less than this the loop waits for them: cheaper than to be told of their end; 0: never",
        at_least=0,
    )
    checkpoint_ms: int = setting(
        SECOND_MS, "how often the durable point of busy partitions is itself made durable", at_least=10
    )
    checkpoint_bytes: int = setting(64 * MIB, "log written between two saved indexes and snapshots", at_least=MIB)
    retention_check_ms: int = setting(30 * SECOND_MS, "how often old segments are looked for", at_least=100)
    producer_expiry_ms: int = setting(DAY_MS, "an idempotent producer silent this long is forgotten", at_least=1000)
    producers_max: int = setting(
        100_000,
        "idempotent producers remembered by one partition; past it the longest silent go",
        at_least=100,
    )
    groups_max: int = setting(10_000, "bounds what is kept of groups in memory", at_least=1)
    group_members_max: int = setting(
        2_000, "members of one group: the leader of a generation is told of each of them", at_least=1
    )
    group_bytes_max: int = setting(
        64 * MIB, "what all members say to each other, and again all positions with their metadata", at_least=KIB
    )
    group_session_ms_min: int = setting(6 * SECOND_MS, "Kafka's limit for a member's session timeout", at_least=1)
    group_session_ms_max: int = setting(1_800 * SECOND_MS, "Kafka's limit for a member's session timeout", at_least=1)
    group_initial_delay_ms: int = setting(
        100, "how long a group that forms waits for the next member, so that a crowd is one rebalance", at_least=0
    )
    consumer_session_ms: int = setting(
        45 * SECOND_MS, "a member of the newer protocol silent this long is dropped, as Kafka does", at_least=100
    )
    consumer_heartbeat_ms: int = setting(
        5 * SECOND_MS, "how often members of the newer protocol are told to come, as Kafka does", at_least=10
    )
    offset_metadata_bytes_max: int = setting(4 * KIB, "Kafka's limit for what is kept with a position", at_least=0)
    offsets_retention_ms: int = setting(
        7 * DAY_MS, "positions of a group that has been empty this long are forgotten, as Kafka does", at_least=1000
    )
    offsets_check_ms: int = setting(600 * SECOND_MS, "how often positions to forget are looked for", at_least=100)
    transaction_timeout_ms_max: int = setting(
        900 * SECOND_MS, "Kafka's limit for how long a transaction may stay open and hold readers back", at_least=1
    )
    transactional_ids_max: int = setting(100_000, "bounds what is kept of transactions in memory", at_least=1)
    transactional_id_chars_max: int = setting(
        1_000, "bounds, with their number, what is kept of transactional ids", at_least=1, at_most=32_767
    )
    transaction_groups_max: int = setting(
        100, "groups in one transaction: all of them are written with each change of it", at_least=1
    )
    transactional_id_expiry_ms: int = setting(
        7 * DAY_MS, "a transactional id that nobody has used for this long is forgotten, as Kafka does", at_least=1000
    )
    transactional_ids_check_ms: int = setting(
        600 * SECOND_MS, "how often transactional ids to forget are looked for", at_least=100
    )
    memory_reserve: int = setting(
        1_000_000,
        "offsets reserved durably at a time by a memory topic, so that none is given twice",
        at_least=1000,
        at_most=1_000_000_000,  # skipped by one batch, whose count has 31 bits
    )

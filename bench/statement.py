"""How it was measured, in words that stand beside the numbers."""

from __future__ import annotations

from collections.abc import Mapping

from bench.boundaries import AFTER_NS, BEFORE_NS
from bench.pace import Pace
from bench.row import PATH, QUEUE


def statement(pace: Pace, machine: Mapping[str, str]) -> dict[str, list[str]]:
    """One fact a line, for each section of the table."""
    facts = ", ".join(f"{name} {value}" for name, value in machine.items())
    where = f"Machine: {facts}. Everything shares it, over loopback."
    return {QUEUE: [where, *_queue(pace)], PATH: [where, *_path(pace)]}


def _queue(pace: Pace) -> list[str]:
    return [
        "Peer: Apache Kafka 4.3.1, one node (broker and controller), heap 1 GB, the flags of its own start script,"
        " default settings. Never are both brokers loaded at once; ours and Kafka's runs alternate.",
        f"Warm-up: Kafka takes {pace.kafka_warm_records:,} records and {pace.kafka_warm_requests_s:.0f} s of single"
        f" requests first; then every trial runs {pace.warm_rounds} time(s) unmeasured on both;"
        " the first 30 % of each ProducerPerformance run are left out.",
        "Values: median of the rounds, with the smallest and the largest where there are several."
        " Ratio: ours divided by Kafka's.",
        "fsync: ours acknowledges after fdatasync unless a row says neither (penstock.durability=memory);"
        " Kafka leaves it to the operating system unless a row says both (flush.messages=1).",
        f"Produce: org.apache.kafka.tools.ProducerPerformance, client defaults (acks=all, idempotent, batch.size 16384,"
        f" linger.ms 5), {pace.produce_bytes // 1_000_000} MB a run"
        f" ({pace.produce_bytes_fsync_many // 1_000_000} MB with 64 partitions), random values, no compression.",
        f"Consume: confluent-kafka with an assigned partition of {pace.consume_bytes // 1_000_000} MB, in the page"
        " cache, up to 1,000 messages a call; it is limited by this client, so the -raw rows fetch 1 MiB at a time and"
        " look at batch headers only.",
        "Requests: 50 connections to one partition, one 100 B record in a batch of its own, acks=all, not idempotent,"
        f" Produce version 9, {pace.requests_s:.0f} s a run; answers are counted, and compared with the log's end.",
        f"End to end: 1,000 records/s of 100 B for {pace.latency_s:.0f} s, confluent-kafka producer (linger.ms 0,"
        " acks=all, not idempotent) and consumer (fetch.wait.max.ms 500, fetch.min.bytes 1) in two processes,"
        " from the call of produce to the return of poll.",
        f"Backlog: {pace.backlog_bytes / 1e9:.1f} GB of 1 KB records in 4 partitions, dropped from the page cache, read"
        " by fetches of up to 1 MiB a partition at a lower priority; the end-to-end load runs before and meanwhile.",
        "Rebalance: 100 members of the classic protocol in one process; one more joins, the others join again as soon"
        f" as a heartbeat says so; until the last has its share; median of {pace.rebalances}.",
        "Idle consumers: 1,000 in ten groups, a heartbeat every 3 s and a fetch that waits 500 ms, two connections"
        f" each; processor time of the broker over {pace.idle_s:.0f} s.",
        "Transactions: one confluent-kafka producer (linger.ms 0), 100 records of 100 B, commit, the next; for"
        f" {pace.transactions_s:.0f} s. With fsync Kafka's topic and its journal of transactions have"
        " flush.messages=1. Reading what is committed: 100 B records in transactions of 1,000, confluent-kafka.",
        f"Transactional ids: {pace.transactional_ids:,}, each initialised once, then a clean restart.",
        "Start: from the start of the process on an empty folder to the ack of one record in a topic made meanwhile;"
        " Kafka's formatting of the folder is not counted. Memory: resident set of the process.",
        f"Core: Node.step with a disk in memory and no sockets, {pace.core_requests:,} requests.",
        f"Check of records: the core again, one client, {pace.core_requests // 100:,} requests of one batch of 16 KiB;"
        " processor time, the median of slices of 50. Beside it the same topic with penstock.check.records=false."
        " The values are hexadecimal digits.",
        f"Many partitions: {pace.partitions:,} empty ones in ten topics, after a clean restart;"
        f" idle processor time over {pace.idle_s:.0f} s. Ours opens a partition at its first use, Kafka all of them"
        " at its start: start, idle and the first memory row gain from that; the last row is after a record to each.",
    ]


def _path(pace: Pace) -> list[str]:
    near_s = (BEFORE_NS + AFTER_NS) / 1e9
    return [
        "Ours: `penstock run` with its own broker, every event and every result acknowledged after fdatasync, acks=all;"
        " the topic's dead letters are looked for meanwhile, but after the catch-up. Spark 4.3.0 with 1 GB of heap on"
        " both sides.",
        "Peer: the same query as a plain PySpark script (bench/plain_spark.py) on a warm Apache Kafka 4.3.1 with"
        " default settings, or with flush.messages=1 where a row says fsync. It is given what one has to know: 2"
        " shuffle partitions, networkBufferMaxWaitTimeMs=1, fetch.max.wait.ms=10, RocksDB with changelogs.",
        "Events: 140 B of JSON, 1,000 keys, 2 partitions; one in ten is filtered.",
        f"Pipeline: one process stamps, produces (confluent-kafka, linger.ms 0, acks=all) and reads results; latency is"
        f" from the call of produce to the return of poll. Both sides commit every {pace.commit_s} s. Warmed with"
        f" {pace.pipeline_warm_s:.0f} s at 2,000/s, then about {pace.boundaries * (pace.commit_s + 1)} s at each rate"
        f" ({pace.pipeline_short_s:.0f} s for Kafka with fsync). Inside a batch: without the {near_s:.0f} s around the"
        " time of each commit file of the checkpoint; across: everything.",
        f"Wait: open loop at 100/s for {pace.wait_s:.0f} s, timed from when a request was due to the whole answer, a"
        " decision a purchase by a stateless real-time query; commits are in it.",
        f"HTTP: wrk with one thread, closed loop, {pace.http_s:.0f} s after half as long a warm-up; each answer is 202."
        " wrk corrects its percentiles for coordinated omission. The peer runs under the same uvicorn settings.",
        "NDJSON: the same wrk, bodies of 900 lines; the peer is one confluent-kafka producer on our broker with the"
        " same events and headers, acks=all, idempotent, linger.ms 5.",
        f"SSE: 1,000 clients in one process, 10 messages/s of 140 B for {pace.sse_s:.0f} s, from the call of produce to"
        " each client's read. Memory: resident set of the edge.",
        f"Catch-up: {pace.catch_up_events:,} events are there; micro-batches of at most 1,000,000 on both sides. From"
        " the plan of the first batch to the last count read, each count checked.",
        "First result: a real-time filter, ten events wait; from the start of the process. Ours starts its broker and"
        " its doors as well; Kafka runs already.",
    ]

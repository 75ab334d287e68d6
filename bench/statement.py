"""How it was measured, in words that stand beside the numbers."""

from __future__ import annotations

from collections.abc import Mapping

from bench.pace import Pace


def statement(pace: Pace, machine: Mapping[str, str]) -> list[str]:
    """One fact a line."""
    facts = ", ".join(f"{name} {value}" for name, value in machine.items())
    return [
        f"Machine: {facts}. Clients and brokers share it, over loopback.",
        "Peer: Apache Kafka 4.3.1, one node (broker and controller), heap 1 GB, the flags of its own start script,"
        " default settings. Never are both brokers loaded at once; ours and Kafka's runs alternate.",
        f"Warm-up: Kafka takes {pace.kafka_warm_records:,} records and {pace.kafka_warm_requests_s:.0f} s of single"
        f" requests first; then every trial runs {pace.warm_rounds} time(s) unmeasured on both;"
        " the first 30 % of each ProducerPerformance run are left out.",
        f"Values: median of {pace.rounds} rounds (10,000 partitions: one), smallest and largest beside it."
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
        "Start: from the start of the process on an empty folder to the ack of one record in a topic made meanwhile;"
        " Kafka's formatting of the folder is not counted. Memory: resident set of the process.",
        f"Core: Node.step with a disk in memory and no sockets, {pace.core_requests:,} requests.",
        f"Many partitions: {pace.partitions:,} empty ones in ten topics, after a clean restart;"
        f" idle processor time over {pace.idle_s:.0f} s. Ours opens a partition at its first use, Kafka all of them"
        " at its start: start, idle and the first memory row gain from that; the last row is after a record to each.",
    ]

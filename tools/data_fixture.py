"""Makes tests/fixtures/data-N.tar.xz: folders that this commit writes, for the tests of later commits.

    python tools/data_fixture.py

It is run only when a format changes on purpose, and it keeps the earlier files: see docs/testing.md.
tests/run/test_stored_data.py imports the readers below, so that the tool and the tests see the same.
The tool imports no module of Penstock: it uses commands, Kafka's protocol, HTTP and files.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, cast
from uuid import UUID

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicCollection, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its re-exported names carry no types
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

ROOT = Path(__file__).parent.parent
APP = Path(__file__).parent / "fixture_app"
ARCHIVES = ROOT / "tests" / "fixtures"
WITHIN_S = 240.0
STOP_WITHIN_S = 90.0
BROKERS = ("stopped", "killed")
OPEN = {"till-open": "open", "till-fenced": "fenced"}  # transactional id: topic
READ_APP = ("clicks", "payments", "large", "seen", "totals", "clicks.dead", "payments.dead", "penstock.topics")
# What a run writes for people, what is locked while it runs, and what Spark makes again.
_NOT_KEPT = ("logs", "lock", "tmp", "events", "spark.log", "__pycache__")
_TEXT_MAX = 200

Told = dict[str, list[list[Any]]]  # records by partition
Json = dict[str, Any]


# Processes.


def wait_for(fact: Callable[[], Any], what: str) -> Any:
    """What `fact` returns once that is true."""
    deadline = time.monotonic() + WITHIN_S
    while not (found := fact()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {WITHIN_S:.0f} s: {what}")
        time.sleep(0.05)
    return found


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return f"127.0.0.1:{probe.getsockname()[1]}"


class Running:
    """A command of Penstock in a folder whose penstock.toml it reads. It is ready when it prints so."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.out = folder / f"{words[0]}.out"
        with self.out.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "penstock", *words],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            wait_for(lambda: self._is_ready() or self._process.poll() is not None, f"{words[0]} is ready: {self.said}")
            if not self._is_ready():
                raise RuntimeError(f"{words[0]} did not start: {self.said}")
        except BaseException:
            self.kill()
            raise

    @property
    def said(self) -> str:
        return self.out.read_text(errors="replace")

    def _is_ready(self) -> bool:
        return any(line.startswith("ready ") for line in self.said.splitlines())

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        self._process.terminate()
        return self._process.wait(STOP_WITHIN_S)

    def kill(self) -> None:
        """SIGKILL of the process and of what it started."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextmanager
def running_broker(folder: Path) -> Iterator[tuple[str, Running]]:
    """A broker on `folder`/data, and its address."""
    address = free_address()
    running = Running(folder, "broker", "--data", "data", "--listen", address)
    try:
        yield address, running
    finally:
        running.kill()


@contextmanager
def running_app(folder: Path) -> Iterator[tuple[str, str, Running]]:
    """The app on `folder`/data, and the addresses of its queue and of its HTTP server."""
    queue, http = free_address(), free_address()
    words = ["run", "fixture.py", "--data", "data", "--listen", queue, "--port", http.rpartition(":")[2]]
    running = Running(folder, *words)
    try:
        yield queue, http, running
    finally:
        running.kill()


# What clients see.


def told(data: bytes | str | None) -> str | None:
    """Bytes as text of JSON; long ones by their hash."""
    if data is None or isinstance(data, str):
        return data
    if len(data) > _TEXT_MAX:
        return f"{len(data)} bytes, sha256 {sha256(data).hexdigest()}"
    return data.decode("latin-1")


def read(address: str, topic: str, *, committed: bool = False) -> Told:
    """Every record that a reader of a topic gets now: offset, time, key, value, headers."""
    isolation = "read_committed" if committed else "read_uncommitted"
    settings = {"group.id": "reader", "enable.auto.commit": False, "enable.partition.eof": True}
    found: Told = {}
    with closing(Consumer({"bootstrap.servers": address, **settings, "isolation.level": isolation})) as consumer:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        places = [
            TopicPartition(topic, n, consumer.get_watermark_offsets(TopicPartition(topic, n), 30)[0])
            for n in partitions
        ]
        consumer.assign(places)
        found = {str(place.partition): [] for place in places}
        unread = {place.partition for place in places}
        deadline = time.monotonic() + WITHIN_S
        while unread:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the end of {topic} was not reached")
            for message in consumer.consume(500, 0.1):
                if (error := message.error()) is None:
                    headers = [[pair[0], told(pair[1])] for pair in message.headers() or []]
                    row = [message.offset(), *message.timestamp(), told(message.key()), told(message.value()), headers]
                    found[str(message.partition())].append(row)
                elif error.name() == "_PARTITION_EOF":
                    unread.discard(cast(int, message.partition()))
                else:
                    raise RuntimeError(f"{topic}: {error}")
    return found


def values(records: Told) -> list[Any]:
    """The values of all partitions, decoded from JSON."""
    return [json.loads(row[4]) for rows in records.values() for row in rows]


def topics(address: str) -> Json:
    """Partitions and settings of every topic, as far as they are not the default."""
    admin = AdminClient({"bootstrap.servers": address})
    there = admin.list_topics(timeout=30).topics
    asked = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(there)]
    found = {}
    for resource, answer in admin.describe_configs(asked).items():
        entries = answer.result(WITHIN_S).values()
        settings = {entry.name: entry.value for entry in entries if not entry.is_default}
        found[resource.name] = {"partitions": len(there[resource.name].partitions), "settings": settings}
    return found


def groups(address: str) -> Json:
    """The positions of every group, with what is kept beside them."""
    admin = AdminClient({"bootstrap.servers": address})
    names = sorted(one.group_id for one in admin.list_consumer_groups().result(WITHIN_S).valid)
    found: Json = {}
    for name in names:
        answer = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(name)])[name].result(WITHIN_S)
        found[name] = {f"{p.topic}-{p.partition}": [p.offset, p.metadata] for p in answer.topic_partitions}
    return found


def look(address: str) -> Json:
    """All that a client can learn of a broker's data."""
    there = topics(address)
    return {
        "topics": there,
        "groups": groups(address),
        "records": {name: read(address, name) for name in there},
        "committed": {name: read(address, name, committed=True) for name in there},
    }


def ask(address: str, frame: bytes) -> bytes:
    """The answer to a request, both as bytes without their length."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=WITHIN_S) as connection, connection.makefile("rb") as file:
        connection.sendall(struct.pack(">i", len(frame)) + frame)
        return file.read(*struct.unpack(">i", file.read(4)))


def post(http: str, path: str, events: Sequence[Json]) -> None:
    """Events that are answered with 202."""
    with closing(HTTPConnection(http, timeout=WITHIN_S)) as connection:
        connection.request("POST", path, json.dumps(events), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 202:
            raise RuntimeError(f"POST {path}: {answer.status} {body!r}")


def live(http: str, query: str) -> Iterator[tuple[str, Json]]:
    """The messages of /live/seen until it ends, each with its resume token; notices are left out."""
    with closing(HTTPConnection(http, timeout=WITHIN_S)) as connection:
        connection.request("GET", f"/live/seen?{query}", headers={"Accept": "text/event-stream"})
        answer = connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"GET /live/seen?{query}: {answer.status} {answer.read()!r}")
        fields: dict[str, str] = {}
        for line in answer:
            name, _, text = line.decode().rstrip("\n").partition(": ")
            if name:
                fields[name] = text
                continue
            if "data" in fields and not fields.get("event", "").startswith("penstock."):
                yield fields["id"], json.loads(fields["data"])
            fields = {}


def settings(folder: Path) -> Json:
    """What `penstock config show` prints in a folder."""
    command = [sys.executable, "-m", "penstock", "config", "show", "--json", "--origin"]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=WITHIN_S, check=True).stdout
    found: Json = json.loads(said)
    return found


# What is stored: a broker's data.


def tell_broker(address: str, data: Path) -> tuple[Json, list[object]]:
    """Store something of everything; what clients see then, and those that must live until the broker ends."""
    admin = AdminClient({"bootstrap.servers": address})
    make_topics(admin)
    store_records(address)
    change_topics(admin, address)
    commit_positions(address)
    open_producers = store_transactions(address)
    repeat = store_repeat(address, data)
    member = stay_in_group(address)
    return {**look(address), "repeat": repeat, "ends": ends_of_open(address, data)}, [*open_producers, member]


def make_topics(admin: AdminClient) -> None:
    kept = {"retention.ms": "-1"}
    wanted = [
        NewTopic("orders", 2, 1, config={**kept, "segment.bytes": str(2**20)}),
        NewTopic("stamped", 1, 1, config={**kept, "message.timestamp.type": "LogAppendTime"}),
        NewTopic("quick", 1, 1, config={**kept, "penstock.durability": "memory"}),
        *(NewTopic(name, 1, 1, config=kept) for name in ("gone", "ledger", "repeated", *OPEN.values())),
    ]
    for future in admin.create_topics(wanted).values():
        future.result(WITHIN_S)


def send(address: str, topic: str, records: Sequence[Mapping[str, Any]], **more: Any) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 20, "acks": "all", **more})
    for record in records:
        producer.produce(topic, **record)
    if producer.flush(WITHIN_S):
        raise RuntimeError(f"{topic} was not written")


def store_records(address: str) -> None:
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        rows = [{"key": f"k{n}", "value": f"{codec} {n} " * 8, "partition": 0} for n in range(4)]
        send(address, "orders", rows, **{"compression.type": codec, "enable.idempotence": bool(number % 2)})
    odd: list[Json] = [
        {"key": "k0", "value": None},
        {"key": None, "value": b"\xff\x00"},
        {"value": "with headers", "headers": [("a", b"1"), ("b", None)]},
    ]
    send(address, "orders", [{"partition": 0, **row} for row in odd])
    for n in range(5):  # two do not fit into a segment
        send(address, "orders", [{"key": f"big{n}", "value": b"%d" % n * 600_000, "partition": 1}])
    for topic in ("stamped", "quick", "gone", "ledger", *OPEN.values()):
        send(
            address,
            topic,
            [{"key": "k", "value": f"{topic} {n}", "timestamp": 1_790_000_000_000 + n} for n in range(3)],
        )


def change_topics(admin: AdminClient, address: str) -> None:
    changed = ConfigResource(
        ResourceType.TOPIC,
        "orders",
        incremental_configs=[ConfigEntry("max.message.bytes", "2000000", incremental_operation=AlterConfigOpType.SET)],
    )
    futures = [
        *admin.incremental_alter_configs([changed]).values(),
        *admin.create_partitions([NewPartitions("orders", 3)]).values(),
        *admin.delete_topics(["gone"]).values(),
        *admin.delete_records([TopicPartition("orders", 1, 1)]).values(),
    ]
    for future in futures:
        future.result(WITHIN_S)
    wait_for(lambda: "gone" not in admin.list_topics(timeout=30).topics, "the topic is deleted")
    wait_for(lambda: len(admin.list_topics("orders", timeout=30).topics["orders"].partitions) == 3, "a third partition")
    send(address, "orders", [{"key": "k", "value": f"added {n}", "partition": 2} for n in range(3)])


def commit_positions(address: str) -> None:
    for group, protocol in (("desk-classic", "classic"), ("desk-consumer", "consumer")):
        with closing(member_of(address, group, protocol)) as consumer:
            offset = take(consumer, 2)
            place = TopicPartition("stamped", 0, offset + 1, metadata=f"{protocol} said this")
            consumer.commit(offsets=[place], asynchronous=False)
    with closing(Consumer({"bootstrap.servers": address, "group.id": "alone"})) as consumer:
        consumer.commit(offsets=[TopicPartition("orders", 0, 7), TopicPartition("orders", 2, 1)], asynchronous=False)


def member_of(address: str, group: str, protocol: str) -> Consumer:
    own = {"group.id": group, "group.protocol": protocol, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": address, **own})
    consumer.subscribe(["stamped"])
    return consumer


def take(consumer: Consumer, count: int) -> int:
    """Read some records; the offset of the last."""
    offset, deadline = -1, time.monotonic() + WITHIN_S
    while count:
        if time.monotonic() > deadline:
            raise TimeoutError("a member of a group was given nothing")
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            offset, count = cast(int, message.offset()), count - 1
    return offset


def stay_in_group(address: str) -> Consumer:
    """A member that is still there when the broker ends."""
    consumer = member_of(address, "desk-present", "consumer")
    take(consumer, 1)
    consumer.commit(offsets=[TopicPartition("stamped", 0, 1)], asynchronous=False)
    return consumer


def store_transactions(address: str) -> list[Producer]:
    """One committed, with a position; one aborted; two open, one of them with a position."""
    done = transactor(address, "till-done")
    for value, commits in (("committed", True), ("aborted", False)):
        done.begin_transaction()
        for n in range(2):
            done.produce("ledger", f"{value} {n}")
        done.flush(WITHIN_S)
        if commits:
            take_position(done, address, "booked")
            done.commit_transaction(WITHIN_S)
        else:
            done.abort_transaction(WITHIN_S)
    send(address, "ledger", [{"value": "after both"}])
    opened = []
    for name, topic in OPEN.items():
        producer = transactor(address, name)
        producer.begin_transaction()
        for n in range(2):
            producer.produce(topic, f"in the transaction {n}")
        if producer.flush(WITHIN_S):
            raise RuntimeError(f"{topic} was not written")
        if name == "till-open":
            take_position(producer, address, "pending")
        send(address, topic, [{"value": "behind it"}])
        opened.append(producer)
    return opened


def transactor(address: str, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": address, "transactional.id": name, "transaction.timeout.ms": 900_000})
    producer.init_transactions(WITHIN_S)
    return producer


def take_position(producer: Producer, address: str, group: str) -> None:
    with closing(Consumer({"bootstrap.servers": address, "group.id": group})) as consumer:
        place = TopicPartition("stamped", 0, 2)
        producer.send_offsets_to_transaction([place], consumer.consumer_group_metadata(), WITHIN_S)


def store_repeat(address: str, data: Path) -> Json:
    """A batch of an idempotent producer, as a request that is sent again, and what the broker answers then."""
    send(address, "repeated", [{"value": f"once {n}"} for n in range(3)], **{"enable.idempotence": True})
    batch = batches(address, data, "repeated")[-1]
    name, records = b"repeated", bytes(8) + batch[8:]
    body = struct.pack(">hhii", -1, -1, 30_000, 1) + struct.pack(">h", len(name)) + name
    frame = header(0, 7) + body + struct.pack(">iii", 1, 0, len(records)) + records
    return {"request": frame.hex(), "answer": ask(address, frame).hex()}


def ends_of_open(address: str, data: Path) -> Json:
    """For each open transaction the request by which its own producer commits it."""
    found = {}
    for name, topic in OPEN.items():
        batch = next(one for one in batches(address, data, topic) if struct.unpack_from(">h", one, 21)[0] & 16)
        producer_id, epoch = struct.unpack_from(">qh", batch, 43)
        text = name.encode()
        frame = header(26, 1) + struct.pack(">h", len(text)) + text + struct.pack(">qh?", producer_id, epoch, True)
        found[name] = frame.hex()
    return found


def header(api: int, version: int) -> bytes:
    return struct.pack(">hhih", api, version, 1, 7) + b"fixture"


def batches(address: str, data: Path, topic: str) -> list[bytes]:
    """The batches of partition 0, from its first file."""
    admin = AdminClient({"bootstrap.servers": address})  # it must live until the answer
    (answer,) = admin.describe_topics(TopicCollection([topic])).values()
    topic_id = answer.result(WITHIN_S).topic_id
    high, low = topic_id.get_most_significant_bits(), topic_id.get_least_significant_bits()
    folder = data / "topics" / str(UUID(int=(high % 2**64) << 64 | low % 2**64)) / "0"
    content = min(folder.glob("*.log")).read_bytes()
    found = []
    while len(content) > 61 and (size := struct.unpack_from(">i", content, 8)[0]):
        found.append(content[: 12 + size])
        content = content[12 + size :]
    return found


def make_broker(folder: Path, how: str) -> None:
    (folder / "data").mkdir(parents=True)
    shutil.copy(APP / "penstock.toml", folder)
    with running_broker(folder) as (address, running):
        found, alive = tell_broker(address, folder / "data")
        if how == "stopped" and (status := running.stop()):
            raise RuntimeError(f"the broker ended with {status}: {running.said}")
        running.kill()
        del alive
    (folder / "expected.json").write_text(json.dumps(found, indent=1))


# What is stored: an app's data.

CARDS = ("a", "f", "c", "a", "f", "a")  # of a three, of f two, of c one; f is in a partition of its own
TAKEN = 3  # messages of /live/seen that a client has seen


def events(prefix: str, cards: Sequence[str]) -> list[Json]:
    return [{"id": f"{prefix}{n}", "card": card, "n": 4 * n} for n, card in enumerate(cards)]


def make_app(folder: Path) -> None:
    shutil.copytree(APP, folder, ignore=shutil.ignore_patterns("__pycache__"))
    data = folder / "data"
    with running_app(folder) as (queue, http, running):
        post(http, "/ingest/clicks", events("c", CARDS))
        for batch in (events("p", CARDS[:3]), events("q", CARDS[3:])):
            before = len(values(read(queue, "totals", committed=True)))
            post(http, "/ingest/payments", batch)
            wait_for(partial(is_longer, queue, "totals", before), "a batch of totals")
        for topic in ("clicks", "payments"):
            send(queue, topic, [{"key": "a", "value": "no JSON", "partition": 0}])
        wait_for(lambda: len(values(read(queue, "seen"))) == len(CARDS), "all clicks are counted")
        wait_for(lambda: is_committed(queue, data), "every checkpoint is at the end of its topics")
        token = [one for one, _ in live(http, "from=beginning&until=now")][TAKEN - 1]
        found = {
            "topics": topics(queue),
            "records": {name: read(queue, name) for name in READ_APP},
            "committed": {name: read(queue, name, committed=True) for name in READ_APP},
            "token": token,
            "after_token": [message for _, message in live(http, f"after={token}&until=now")],
            "settings": settings(folder),
        }
        if running.stop():
            raise RuntimeError(running.said)
    (folder / "expected.json").write_text(json.dumps(found, indent=1))


def is_longer(queue: str, topic: str, count: int) -> bool:
    return len(values(read(queue, topic, committed=True))) > count


def is_committed(queue: str, data: Path) -> bool:
    """Whether Spark has committed a batch up to the end of its topics in each checkpoint."""
    folders = [path for path in (data / "analyze" / "checkpoints").iterdir() if path.is_dir()]
    return len(folders) >= 3 and all(is_at_end(queue, committed(folder)) for folder in folders)


def committed(checkpoint: Path) -> Json:
    """The offsets behind the last batch that Spark committed, by topic and partition."""
    commits = checkpoint / "commits"
    numbers = [int(path.name) for path in commits.iterdir() if path.name.isdigit()] if commits.is_dir() else []
    found: Json = {}
    if numbers:
        for line in (checkpoint / "offsets" / str(max(numbers))).read_text().splitlines()[2:]:
            found |= json.loads(line)
    return found


def is_at_end(queue: str, positions: Json) -> bool:
    with closing(Consumer({"bootstrap.servers": queue, "group.id": "reader"})) as consumer:
        for topic, parts in positions.items():
            for part, offset in parts.items():
                if consumer.get_watermark_offsets(TopicPartition(topic, int(part)), 30)[1] != offset:
                    return False
    return bool(positions)


# The archive.


def pack(folder: Path, archive: Path) -> None:
    """The same folder gives the same archive."""
    archive.parent.mkdir(parents=True, exist_ok=True)

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime = entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for path in sorted(folder.rglob("*")):
            if path.suffix != ".out" and not set(path.relative_to(folder).parts) & {*_NOT_KEPT}:
                tar.add(path, str(path.relative_to(folder)), recursive=False, filter=plain)


def archives() -> list[Path]:
    """Every fixture, the oldest first."""
    return sorted(ARCHIVES.glob("data-*.tar.xz"), key=lambda path: int(path.name.split(".")[0].removeprefix("data-")))


def unpack(archive: Path, folder: Path) -> Path:
    """A copy of a fixture."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return folder


def main() -> None:
    archive = ARCHIVES / f"data-{len(archives()) + 1}.tar.xz"
    with tempfile.TemporaryDirectory(prefix="penstock-fixture-") as made:
        folder = Path(made)
        for how in BROKERS:
            make_broker(folder / how, how)
        make_app(folder / "app")
        pack(folder, archive)
    print(f"{archive}: {archive.stat().st_size} bytes")


if __name__ == "__main__":
    main()

"""One partition on a simulated disk."""

from __future__ import annotations

from random import Random

from penstock.config.broker import BrokerConfig
from penstock.config.topic import TopicConfig
from penstock.kafka.records.batch import decode_header
from penstock.ports import Buffer
from penstock.queue.log.layout import file_name
from penstock.queue.log.log import Log
from penstock.queue.log.reading import read
from penstock.queue.log.recovery import open_log
from proof.sim.disk import FakeDisk
from stage.batches import NOW_MS

FOLDER = "p"
LIMITS = BrokerConfig(memory_reserve=1000)


def new_disk() -> FakeDisk:
    disk = FakeDisk(Random(7))
    disk.make_folder(FOLDER)
    disk.sync_folder("")
    return disk


def opened(disk: FakeDisk, config: TopicConfig | None = None, now_ms: int = NOW_MS) -> Log:
    """The log, recovered from whatever is on the disk."""
    return open_log(disk, FOLDER, config or TopicConfig(), LIMITS, now_ms)


def stage(log: Log, batch: bytearray, now_ms: int = NOW_MS) -> int:
    header = decode_header(batch)
    offset = log.append(batch, header.last_delta, header.max_timestamp, now_ms)
    if header.producer_id >= 0:
        log.producers.admit(*header[9:13], offset, now_ms)
    return offset


def sync(log: Log) -> None:
    """One group commit, from write to end of sync."""
    log.flush()
    if log.needs_sync:
        files, folders = log.begin_sync()
        for file in files:
            file.sync()
        for folder in folders:
            log.disk.sync_folder(folder)
        log.end_sync()


def put(log: Log, *batches: bytearray, now_ms: int = NOW_MS) -> list[int]:
    """Append batches one by one, each durable before the next; their offsets."""
    offsets = []
    for one in batches:
        offsets.append(stage(log, one, now_ms))
        sync(log)
    return offsets


def cut(data: Buffer) -> list[bytes]:
    """The batches in what a reader was given."""
    view, found = memoryview(data), []
    while len(view):
        size = decode_header(view).size
        found.append(bytes(view[:size]))
        view = view[size:]
    return found


def read_all(log: Log) -> list[bytes]:
    """Every batch, from the start of the log to its visible end."""
    found: list[bytes] = []
    offset = log.start_offset
    while offset < log.visible.offset:
        batches = cut(read(log, offset, 1 << 20))
        found += batches
        offset = decode_header(batches[-1]).next_offset
    return found


def path(base_offset: int, ending: str) -> str:
    return f"{FOLDER}/{file_name(base_offset, ending)}"


def bytes_of(disk: FakeDisk, name: str) -> bytearray:
    """The content of a file, for a look."""
    return disk.inode(name).data


def overwrite(disk: FakeDisk, name: str, data: bytes) -> None:
    """Replace the content of a file behind the log's back, durably."""
    file = disk.create(name)
    file.write(0, (data,))
    file.sync()
    file.close()
    disk.sync_folder(name.rpartition("/")[0])

"""A whole data folder, read offline: the metadata log, then every partition, by topic name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from penstock.errors import PeerError, StorageError
from penstock.kafka.records.batch import BatchHeader
from penstock.kafka.records.record import decode_records
from penstock.ports import Disk, File
from penstock.queue.core.catalog import Catalog
from penstock.queue.core.catalog_changes import decode_change
from penstock.queue.log.inspection import Finding, Kind, inspect_partition
from penstock.queue.log.layout import (
    GROUPS_FOLDER,
    LOG,
    META_FOLDER,
    TOPICS_FOLDER,
    TRANSACTIONS_FOLDER,
    base_offsets,
    file_name,
    partition_folder,
)
from penstock.queue.log.scan import Damage, walk

_JOURNALS = (GROUPS_FOLDER, TRANSACTIONS_FOLDER)  # called what their folders are called

_INSTEAD = {
    META_FOLDER: "begin with another data folder: without it nobody knows the names and settings of topics, and no "
    "broker serves their records, which stay in topics/",
    GROUPS_FOLDER: "move it away: then all groups and their positions are forgotten, and each group begins anew where "
    "its auto.offset.reset says",
    TRANSACTIONS_FOLDER: "move it away: then all transactional ids are forgotten, and what is open is aborted, even "
    "what is left of a commit that was under way",
}


class Surveyed(NamedTuple):
    """One log of the folder; `topic` is None for the node's own logs and for what nobody knows."""

    topic: str | None
    partition: int | None
    folder: str
    findings: list[Finding]

    @property
    def is_own(self) -> bool:
        """Whether the node writes it for itself."""
        return self.folder in (META_FOLDER, *_JOURNALS)

    @property
    def title(self) -> str:
        if self.topic is not None:
            return f"{self.topic}, partition {self.partition}"
        return {META_FOLDER: "metadata"}.get(self.folder, self.folder)


def survey(disk: Disk) -> Iterator[Surveyed]:
    """Every log below the data folder, the metadata log first."""
    catalog = Catalog()
    findings = _of_own(META_FOLDER, inspect_partition(disk, META_FOLDER))
    findings += _replay(disk, catalog)
    yield Surveyed(None, None, META_FOLDER, findings)
    for folder in _JOURNALS:
        if disk.exists(folder):
            yield Surveyed(None, None, folder, _of_own(folder, _inspect(disk, folder)))
    for name in sorted(catalog.topics):
        topic = catalog.topics[name]
        for partition in range(topic.partitions):
            folder = partition_folder(topic.topic_id, partition)
            yield Surveyed(name, partition, folder, _inspect(disk, folder))
    for folder in _unknown_folders(disk, catalog):
        what = "no topic in the metadata log owns this folder"
        advice = "keep it if the metadata log is damaged: the records in it are readable; else remove it"
        yield Surveyed(None, None, folder, [Finding(Kind.KEPT_ASIDE, folder, what, advice), *_inspect(disk, folder)])


def _of_own(folder: str, findings: list[Finding]) -> list[Finding]:
    """No reader steps over damage here: the broker does not start."""
    advice = f"no broker starts on it: restore {folder}/ from a backup, or {_INSTEAD[folder]}"
    return [one._replace(advice=advice) if one.kind is Kind.DAMAGED else one for one in findings]


def _inspect(disk: Disk, folder: str) -> list[Finding]:
    try:
        return inspect_partition(disk, folder)
    except FileNotFoundError:
        advice = "restore it from a backup, or delete the topic"
        return [Finding(Kind.MISSING, folder, "the folder of this partition is gone", advice)]
    except OSError as error:
        advice = "look at the disk and its cables before anything else; restore the folder from a backup"
        return [Finding(Kind.UNREADABLE, folder, f"the disk does not give it ({error})", advice)]


def batches_of(disk: Disk, folder: str) -> Iterator[tuple[File, int, BatchHeader]]:
    """Every batch of a partition that can be read, in order: its file, position and header."""
    for base in base_offsets(disk.names(folder), LOG):
        file = disk.open(f"{folder}/{file_name(base, LOG)}")
        try:
            for found in walk(file, 0, file.size(), base, verify=True):
                if not isinstance(found, Damage):
                    yield file, *found
        finally:
            file.close()


def read_catalog(disk: Disk) -> Catalog:
    """The topics of a data folder, as far as its metadata log can be read."""
    catalog = Catalog()
    for _ in _replay(disk, catalog):
        pass
    return catalog


def _replay(disk: Disk, catalog: Catalog) -> Iterator[Finding]:
    """Fill the catalog with every change that can be read; damaged batches were found before."""
    for file, position, header in batches_of(disk, META_FOLDER):
        try:
            for record in decode_records(file.read(position, header.size)):
                catalog.replay_(decode_change(record.value or b""))
        except (PeerError, StorageError) as error:
            advice = "use a Penstock at least as new as the one that wrote it, or restore it from a backup"
            end, offset, behind = position + header.size, header.base_offset, header.next_offset
            yield Finding(Kind.DAMAGED, file.path, str(error), advice, position, end, offset, behind)


def _unknown_folders(disk: Disk, catalog: Catalog) -> Iterator[str]:
    if not disk.exists(TOPICS_FOLDER):
        return
    for name in disk.names(TOPICS_FOLDER):
        try:
            topic_id = UUID(name)
        except ValueError:
            continue
        if catalog.by_id(topic_id) is not None or topic_id in catalog.deleted:
            continue
        for partition in disk.names(f"{TOPICS_FOLDER}/{name}"):
            folder = f"{TOPICS_FOLDER}/{name}/{partition}"
            if base_offsets(disk.names(folder), LOG):
                yield folder

"""A simulated reader of committed records: it leaves out what it is told was aborted, as clients do."""

from __future__ import annotations

from penstock.errors import ErrorCode
from penstock.kafka.records.batch import HEADER_SIZE, decode_header
from penstock.kafka.records.marker import decode_marker, is_marker
from penstock.kafka.wire.messages.fetch import PartitionData
from penstock.ports import Buffer
from proof.sim.client_context import Scene
from proof.sim.clients.consumer import Consumer, Position
from proof.sim.promises import Ledger


class CommittedReader(Consumer):
    """Remembers what it handed to its user."""

    isolation_level = 1

    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(scene, name)
        self._seen: dict[tuple[str, int], set[str]] = {}

    def seen_in(self, topic: str, partition: int) -> set[str]:
        return self._seen.get((topic, partition), set())

    def _take(self, position: Position, data: PartitionData) -> None:
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            position.offset = -1
        elif data.error_code == ErrorCode.CORRUPT_MESSAGE:
            position.offset += 1
        if data.error_code:
            return
        position.end = data.last_stable_offset
        raw = data.records or b""
        seen = self._seen.setdefault((position.topic.name, position.index), set())
        seen.update(committed_values(self.scene.ledger, data))
        at = 0
        while at < len(raw):
            header = decode_header(raw, at)
            position.offset = max(position.offset, header.next_offset)
            at += header.size


def committed_values(ledger: Ledger, data: PartitionData) -> list[str]:
    """What a client hands to its user of this answer."""
    raw: Buffer = data.records or b""
    aborted = sorted((one.first_offset, one.producer_id) for one in data.aborted_transactions or ())
    skipped: set[int] = set()
    found: list[str] = []
    at = 0
    while at < len(raw):
        header = decode_header(raw, at)
        while aborted and aborted[0][0] <= header.last_offset:
            skipped.add(aborted.pop(0)[1])
        batch = memoryview(raw)[at : at + header.size]
        if is_marker(header):
            if not decode_marker(batch).is_commit:
                skipped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in skipped):
            found += ledger.values.get(bytes(batch[HEADER_SIZE:]), ()) if not header.is_control else ()
        at += header.size
    return found

"""What the node's own logs hold: one value a record."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.errors import StorageError
from penstock.kafka.records.batch import decode_header
from penstock.kafka.records.record import decode_records
from penstock.queue.log.log import Log
from penstock.queue.log.reading import DamagedError, read

_READ_BYTES = 1 << 20


class OwnLogError(StorageError):
    """A log that the node cannot start without is damaged."""


def read_values(log: Log, name: str) -> Iterator[bytes]:
    """Every value, in order. OwnLogError if the log is damaged."""
    offset = log.start_offset
    while offset < log.next_offset:
        try:
            data = read(log, offset, _READ_BYTES)
        except DamagedError as damaged:
            where = f"at offset {damaged.damage.offset} ({damaged.damage.reason})"
            raise OwnLogError(f"the {name} is damaged {where}, and the broker does not start without it") from None
        while len(data):
            header = decode_header(data)
            for record in decode_records(data[: header.size]):
                yield record.value or b""
            offset = header.next_offset
            data = data[header.size :]

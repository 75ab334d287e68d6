"""The layout of a client's produce requests for a partition. The next request is compared with it and not decoded."""

from __future__ import annotations

from typing import Final

from penstock.kafka.wire.produce_shape import Opening, ProduceShape
from penstock.queue.core.catalog import Topic
from penstock.queue.core.partition import Partition

SHAPES_MAX: Final = 32  # per connection, one for each partition; about 1 KB each
OPENINGS_MAX: Final = 4  # per connection, one for each length of topic name


class Shape:
    """The layout of a connection's produce requests for one partition, and their destination."""

    __slots__ = (
        "after_max_ms",
        "before_max_ms",
        "bytes_max",
        "checks_records",
        "is_stamped_here",
        "key",
        "number",
        "partition",
        "wire",
    )

    def __init__(self, wire: ProduceShape, key: bytes, topic: Topic, partition: Partition, number: int) -> None:
        config = topic.config
        self.wire = wire
        self.key = key
        self.partition = partition
        self.number = number
        self.bytes_max = config.max_message_bytes
        self.checks_records = config.checks_records
        self.after_max_ms = config.timestamp_after_max_ms
        self.before_max_ms = config.timestamp_before_max_ms
        self.is_stamped_here = config.log_append_time


class Shapes:
    """The shapes of a connection's requests, by the bytes before the batch. They are valid for one catalog version."""

    __slots__ = ("catalog_version", "known", "openings")

    def __init__(self, catalog_version: int) -> None:
        self.catalog_version = catalog_version
        self.known: dict[bytes, Shape] = {}
        self.openings: list[Opening] = []

    def add(self, shape: Shape) -> None:
        """Keep the shape if the limits allow it. The broker decodes requests whose shape is not kept."""
        wire, known = shape.wire, self.known
        if wire.middle not in known and len(known) >= SHAPES_MAX:
            return
        if not any(opening.is_of(wire) for opening in self.openings):
            if len(self.openings) >= OPENINGS_MAX:
                return
            self.openings.append(Opening(wire.version, len(wire.middle)))
        known[wire.middle] = shape

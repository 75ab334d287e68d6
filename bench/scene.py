"""What trials share: the two running brokers, a folder for data, and how long to measure."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.pace import Pace
from bench.penstock_node import PenstockNode
from bench.topics import create_topic, delete_topic
from proof.oracle.kafka import KafkaNode

OURS, KAFKA = "penstock", "kafka"
FSYNC, NO_FSYNC = "fsync", "none"

Node = PenstockNode | KafkaNode

# Kafka 4.3.1 leaves fsync to the operating system unless a topic says otherwise; ours does it before every ack.
TOPIC_SETTINGS: dict[tuple[str, str], dict[str, str]] = {
    (OURS, FSYNC): {},
    (OURS, NO_FSYNC): {"penstock.durability": "memory"},
    (KAFKA, FSYNC): {"flush.messages": "1"},
    (KAFKA, NO_FSYNC): {},
}


def say(text: str) -> None:
    """Progress, for the person who waits."""
    print(text, file=sys.stderr, flush=True)


class Scene:
    """Brokers start when a trial first asks for them, and live until `stop_brokers`."""

    def __init__(self, folder: Path, pace: Pace) -> None:
        self.folder = folder
        self.pace = pace
        self._nodes: dict[str, Node] = {}
        self._numbers = itertools.count(1)

    def broker(self, side: str) -> Node:
        """The shared broker of a side."""
        if side not in self._nodes:
            say(f"starting {side}")
            node = self._fresh_node(side)
            node.start()
            self._nodes[side] = node
        return self._nodes[side]

    @contextmanager
    def lone_broker(self, side: str) -> Iterator[Node]:
        """A broker on an empty folder, with the machine to itself; stopped afterwards."""
        self.stop_brokers()
        node = self._fresh_node(side)
        node.start()
        try:
            yield node
        finally:
            node.stop()

    def _fresh_node(self, side: str) -> Node:
        folder = self.fresh_folder(side)
        return PenstockNode(folder) if side == OURS else KafkaNode(folder, heap="1g")

    def fresh_folder(self, name: str) -> Path:
        """An empty folder."""
        folder = self.folder / f"{name}-{next(self._numbers)}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def stop_brokers(self) -> None:
        """End the shared brokers and free their disk."""
        while self._nodes:
            _, node = self._nodes.popitem()
            node.stop()

    @contextmanager
    def topic(self, side: str, durability: str, partitions: int = 1) -> Iterator[tuple[str, str]]:
        """A new topic as (address, name); removed afterwards, and the disk left quiet for the next trial."""
        address = self.broker(side).address
        name = f"bench-{next(self._numbers)}"
        os.sync()  # what another trial left in the page cache must not slow this one's syncs
        create_topic(address, name, partitions, TOPIC_SETTINGS[side, durability])
        yield address, name
        delete_topic(address, name)

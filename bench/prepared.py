"""Data of an app that has not run yet: its topics are there, and whatever the caller puts into them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import path_apps
from bench.penstock_node import PenstockNode
from penstock.client.topics import provide_topics
from penstock.guarantee import Queue
from penstock.kafka.target import KafkaTarget
from penstock.plan.planner import plan_app
from penstock.plan.topics import wanted_topics


@contextmanager
def prepared_data(app: str, data: Path) -> Iterator[str]:
    """The address of the app's own broker with the app's topics, run for the length of the block."""
    node = PenstockNode(data.parent / "preparing")
    node.start()
    try:
        plan = plan_app(getattr(path_apps, app), Queue())
        provide_topics(KafkaTarget.parse(node.address), list(wanted_topics(plan)))
        yield node.address
    finally:
        node.stop()
    data.mkdir(parents=True, exist_ok=True)
    shutil.move(data.parent / "preparing" / "data", data / "queue")

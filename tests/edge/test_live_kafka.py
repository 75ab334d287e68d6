"""The same edge before Apache Kafka: it cannot tell the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from proof.oracle.kafka import KafkaNode
from tests.edge.live_stage import Curl, Stage


@pytest.fixture
def stage(tmp_path: Path, kafka_node: KafkaNode) -> Iterator[Stage]:
    built = Stage(tmp_path, kafka=kafka_node.address, live_recent_max=1)
    yield built
    built.close()


def test_history_a_gap_and_what_happens(stage: Stage, need_tool: Callable[[str], str]) -> None:
    """From before what is kept: the gap is told, then history, then live, each once."""
    stage.send("ticks", 30)
    stage.trim("ticks", 10)
    live = Curl(need_tool("curl"), f"{stage.url}/live/ticks?after=ticks=0:4")
    try:
        gap, *history = live.take(21)
        assert (gap.name, gap.json["from"], gap.json["to"], gap.json["missed"]) == ("penstock.gap", 4, 10, 6)
        stage.send("ticks", 5)
        assert [event.place[2] for event in [*history, *live.take(5)]] == list(range(10, 35))
    finally:
        live.close()

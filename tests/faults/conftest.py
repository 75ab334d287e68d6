"""Brokers in processes of their own, and what breaks them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock.drills.broker_process import BrokerProcess
from penstock.drills.recording_clients import Recorder
from proof.storm.fragile_disk import FragileDisk

Start = Callable[..., BrokerProcess]


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[Start]:
    """start_broker(**options) gives a running broker; its data is below tmp_path unless told."""
    started: list[BrokerProcess] = []

    def start(data: Path | None = None, **options: object) -> BrokerProcess:
        broker = BrokerProcess(data or tmp_path / "data", tmp_path, **options)  # type: ignore[arg-type]
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        broker.kill()


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    """The history of this test's clients."""
    opened = Recorder(tmp_path / "history.jsonl")
    yield opened
    opened.close()


@pytest.fixture
def fragile_disk(tmp_path: Path, need_tool: Callable[[str], str]) -> Iterator[Callable[[int], FragileDisk]]:
    """fragile_disk(size_bytes) gives a mounted file system; ask for it before start_broker, so that it ends last."""
    for tool in ("mkfs.ext4", "mount", "umount"):
        need_tool(tool)
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        reason = "mounting an image needs root and loop devices"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    mounted: list[FragileDisk] = []

    def mount(size_bytes: int) -> FragileDisk:
        disk = FragileDisk(tmp_path, size_bytes)
        mounted.append(disk.__enter__())
        return disk

    yield mount
    for disk in mounted:
        disk.__exit__(None, None, None)

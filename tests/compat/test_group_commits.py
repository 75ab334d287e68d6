"""Offsets that are committed for a group without members, on our broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.client.group_commits import GroupCommits
from penstock.drills.broker_process import BrokerProcess
from penstock.drills.recording_clients import create_topic
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget


def test_offsets_are_committed_again_after_the_broker_was_away(tmp_path: Path) -> None:
    """A broker that is away is an error, and no more than that: librdkafka ends the process."""
    with BrokerProcess(tmp_path / "data", tmp_path) as broker:
        create_topic(broker.address, "moves", 2)
        commits = GroupCommits(KafkaTarget.parse(broker.address))
        commits.commit("penstock.bank.totals", {"moves": {0: 7, 1: 9}})
        broker.kill()
        with pytest.raises(PenstockError):
            commits.commit("penstock.bank.totals", {"moves": {0: 8}})
        broker.start()
        commits.commit("penstock.bank.totals", {"moves": {0: 8, 1: 9}})
        commits.close()

"""The size of a batch of one record, against what librdkafka sends and the broker stores."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from penstock.drills.broker_process import BrokerProcess
from penstock.kafka.records.batch import decode_header
from penstock.kafka.records.size import batch_size

DEADLINE_S = 60.0


@pytest.mark.parametrize("key", [None, b"", b"k" * 63, b"k" * 64])
def test_the_size_of_a_batch_is_what_librdkafka_sends(tmp_path: Path, key: bytes | None) -> None:
    """Lengths at which a varint grows; read from the segment that the broker wrote."""
    sent = [
        (b"x" * size, [("h" * name, b"v" * text) for name, text in headers])
        for size in (0, 1, 60, 63, 64, 100, 8_100, 8_191, 8_192, 70_000)
        for headers in ([], [(1, 0)], [(63, 64)], [(2, 3)] * 64, [(64, 9_000)] * 3)
    ]
    with BrokerProcess(tmp_path / "data", tmp_path) as broker:
        admin: Any = importlib.import_module("confluent_kafka.admin")
        client = admin.AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
        client.create_topics([admin.NewTopic("sizes", 1)])["sizes"].result(DEADLINE_S)
        producer = Producer({"bootstrap.servers": broker.address, "batch.num.messages": 1, "log_level": 0})
        for value, headers in sent:
            producer.produce("sizes", value, key, 0, headers=headers)
        assert producer.flush(DEADLINE_S) == 0
    (segment,) = (tmp_path / "data").glob("topics/*/0/*.log")
    data, at, sizes = segment.read_bytes(), 0, []
    while len(sizes) < len(sent):
        sizes.append(decode_header(data, at).size)
        at += sizes[-1]
    assert sizes == [batch_size(key, value, headers) for value, headers in sent]

"""What stands at the end of a partition, on our broker and on Apache Kafka."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.client.group_lags import GroupOffsets
from penstock.client.tail_reader import TailReader
from penstock.kafka.target import KafkaTarget

WITHIN_S = 60.0


@pytest.fixture
def tails(broker_address: str) -> Iterator[TailReader]:
    reader = TailReader(KafkaTarget.parse(broker_address))
    yield reader
    reader.close()


def test_markers_at_the_end_are_told_from_records(tails: TailReader, broker_address: str, topic: str) -> None:
    """Three partitions: one that ends with a marker, one that ends with a record, and one that is empty."""
    admin = AdminClient({"bootstrap.servers": broker_address})
    admin.create_topics([NewTopic(topic, 3)])[topic].result(WITHIN_S)
    producer = Producer({"bootstrap.servers": broker_address, "transactional.id": topic})
    producer.init_transactions(WITHIN_S)

    def transact(values: int, partition: int = 0) -> None:
        producer.begin_transaction()
        for _ in range(values):
            producer.produce(topic, b"v", partition=partition)
        producer.flush()

    transact(3)
    producer.commit_transaction(WITHIN_S)
    plain = Producer({"bootstrap.servers": broker_address})
    for _ in range(40):
        plain.produce(topic, b"v", partition=1)
    plain.flush()
    first, second, third = (topic, 0), (topic, 1), (topic, 2)
    assert tails.record_ends({first: 4, second: 40, third: 0}, WITHIN_S) == {first: 3, second: 40, third: 0}
    assert tails.fully_read({first: (3, 4), second: (39, 40)}, WITHIN_S) == {first}
    assert tails.fully_read({first: (2, 4), second: (0, 40)}, WITHIN_S) == set()
    transact(20)
    producer.abort_transaction(WITHIN_S)
    assert tails.fully_read({first: (3, 25)}, WITHIN_S) == {first}
    assert tails.record_ends({first: 25}, WITHIN_S) == {first: 25}, "the last record is too far back to look for"
    transact(1)
    assert tails.fully_read({first: (3, 26)}, WITHIN_S) == set(), "it may be committed"
    assert tails.record_ends({first: 26}, 1.0) == {}
    producer.commit_transaction(WITHIN_S)
    assert tails.record_ends({first: 27}, WITHIN_S) == {first: 26}


def test_a_group_that_has_read_all_of_a_transactional_topic_has_no_lag(broker_address: str, topic: str) -> None:
    """What /metrics says: the end lies behind the marker of the last transaction."""
    admin = AdminClient({"bootstrap.servers": broker_address})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(WITHIN_S)
    producer = Producer({"bootstrap.servers": broker_address, "transactional.id": topic})
    producer.init_transactions(WITHIN_S)
    producer.begin_transaction()
    for _ in range(3):
        producer.produce(topic, b"v")
    producer.commit_transaction(WITHIN_S)
    offsets = GroupOffsets(KafkaTarget.parse(broker_address), [topic], groups_max=1_000)
    for position, lag in ((1, 2), (3, 0)):
        at = [TopicPartition(topic, 0, position)]
        group = ConsumerGroupTopicPartitions(f"g-{topic}", at)
        admin.alter_consumer_group_offsets([group])[f"g-{topic}"].result(WITHIN_S)
        assert offsets.lags(WITHIN_S).lags[f"g-{topic}", topic] == lag
    offsets.close()

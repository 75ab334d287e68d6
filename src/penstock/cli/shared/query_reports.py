"""Reads what queries report: the records of penstock.queries."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.cli.shared.broker_link import ANSWER_TIMEOUT_S, reach
from penstock.client.factory import client_settings
from penstock.client.offsets import offsets_at_time
from penstock.events.headers import QUERIES_TOPIC
from penstock.events.query_status import QueryState, QueryStatus, decode_status
from penstock.kafka.target import KafkaTarget

if TYPE_CHECKING:
    from confluent_kafka import Consumer

_HISTORY_MS = 3_600_000  # a query that was silent for an hour is forgotten, as its reports are
_WAIT_S = 0.2  # how long an interruption may wait for the client library
Reports = dict[tuple[str, str], QueryStatus]  # by app and query


class ReportReader:
    """The last report of each query, from an hour ago on."""

    def __init__(self, broker: KafkaTarget) -> None:
        """PenstockError if no broker answers."""
        settings = client_settings(reach(broker)) | {
            "group.id": "penstock-queries",  # the library wants one; the partition is assigned, nothing is committed
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
        }
        from confluent_kafka import Consumer

        self._consumer: Consumer = Consumer(settings)
        self._is_there = False
        self.reports: Reports = {}

    def read_all(self) -> None:
        """Read to the end."""
        self._is_there = self._assign()
        if self._is_there:
            self.read(ANSWER_TIMEOUT_S, until_end=True)

    def read(self, most_s: float, *, until_end: bool = False) -> None:
        """Read on for so long."""
        self._is_there = self._is_there or self._assign()
        deadline = time.monotonic() + most_s
        while (left := deadline - time.monotonic()) > 0:
            message = self._consumer.poll(min(left, _WAIT_S))
            if message is None:
                continue
            if (error := message.error()) is not None:
                if until_end and error.name() == "_PARTITION_EOF":
                    return
                continue
            if (report := decode_status(message.value())) is not None:
                self._take(report)

    def close(self) -> None:
        self._consumer.close()

    def _take(self, report: QueryStatus) -> None:
        if report.state == QueryState.DROPPED:
            self.reports.pop((report.app, report.query), None)
        else:
            self.reports[report.app, report.query] = report

    def _assign(self) -> bool:
        """Begin to read an hour ago; False while there is no such topic."""
        from confluent_kafka import OFFSET_END, TopicPartition

        if self._consumer.list_topics(QUERIES_TOPIC, timeout=ANSWER_TIMEOUT_S).topics[QUERIES_TOPIC].error is not None:
            return False
        since_ms = time.time_ns() // 1_000_000 - _HISTORY_MS
        start = offsets_at_time(self._consumer, QUERIES_TOPIC, [0], since_ms, ANSWER_TIMEOUT_S)[0]
        self._consumer.assign([TopicPartition(QUERIES_TOPIC, 0, OFFSET_END if start is None else start)])
        return True

"""Writes the results of a batch and the token of the batch in one transaction: exactly once, whoever is killed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException, Producer

from penstock.analyze.checkpoints import Checkpoint
from penstock.analyze.driver_sink import TableRows
from penstock.analyze.exactly_once.batch_tokens import Token, decode_token, encode_token, is_done, reset_token
from penstock.analyze.failures import AwayError
from penstock.analyze.frames.results import with_flat_headers
from penstock.analyze.progress import Written
from penstock.analyze.record_writer import OF_THE_RECORD
from penstock.analyze.result_table import Row
from penstock.client.factory import producer_settings
from penstock.client.lookup import last_value
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ANSWER_S = 30.0
_ABORT_S = 5.0
_FENCED = ("_FENCED", "PRODUCER_FENCED")


class TransactionalSink:
    """The writer of one query. Whoever opens a later one with the same batches ends this one."""

    def __init__(
        self,
        topic: str,
        batches: str,
        queue: KafkaTarget,
        checkpoint: Checkpoint,
        written: Written,
        headers: Sequence[str] = (),
        table: TableRows | None = None,
    ) -> None:
        """`batches` is the topic of the tokens, and the transactional id. `headers` names those of each record.

        With a `table`, a batch is the whole result, and only its changes are written.
        """
        self._headers = headers
        self._topic = topic
        self._written = written
        self._batches = batches
        self._queue = queue
        self._checkpoint = checkpoint
        self._table = table
        self._producer: Any = None
        self._last: Token | None = None

    def write(self, batch: DataFrame, number: int) -> None:
        """Write a batch of Spark's, unless it was committed before; TokenError if nobody can tell."""
        token = self._checkpoint.token(number)
        if self.has(token):
            if self._table is not None:  # it may be that of the batch before: the crash came between the two
                self._table.changes(batch, self._headers)
                self._table.save()
            else:
                # What a query remembers must still go on by this batch.
                batch.write.format("noop").mode("overwrite").save()
            return
        if self._table is not None:
            rows = self._table.changes(batch, self._headers)
        else:
            rows = [(row[0], row[1], row[2:]) for row in with_flat_headers(batch, self._headers).collect()]
        # A power cut that took what says which events these are would make another batch of the same number.
        self._checkpoint.sync()
        if self._table is not None:
            self._table.begin()
        self.commit(rows, token)
        if self._table is not None:
            self._table.save()
        self._written[number] = len(rows)

    def has(self, token: Token) -> bool:
        """Whether this batch was committed before; what nobody knows is found out. TokenError if nobody can tell."""
        if self._producer is None:
            self.open()
        return is_done(token, self._last)

    def open(self) -> Token | None:
        """Fence whoever wrote before, and learn which batch was committed last."""
        try:
            producer: Any = Producer(
                producer_settings(self._queue) | {"transactional.id": self._batches, "linger.ms": 2}
            )
            producer.init_transactions(_ANSWER_S)
            # Only now: what the one before had under way is committed or aborted.
            value = last_value(self._queue, self._batches, _ANSWER_S)
        except KafkaException as error:
            raise _failure(error, self._batches) from error
        self._last = None if value is None else decode_token(value)
        self._producer = producer
        return self._last

    def reset(self, orders: Mapping[str, str]) -> None:
        """Fence whoever wrote before, and let the numbers of batches begin again; `orders` are noted as the reason."""
        self.open()
        self.commit((), reset_token(" ".join(sorted(orders.values()))))

    def commit(self, rows: Iterable[Row], token: Token) -> None:
        """The results and the token, or neither. After an error it must be opened again to know which."""
        producer, self._producer = self._producer, None
        try:
            producer.begin_transaction()
            for key, value, headers in rows:
                self._produce(producer, key, value, headers)
            # A record, not a position of a group: librdkafka 2.16 hangs in sending those once the broker was away.
            producer.produce(self._batches, encode_token(token))
            producer.commit_transaction(_ANSWER_S)
        except KafkaException as error:
            with suppress(KafkaException):  # else readers of what is committed wait for its time-out
                producer.abort_transaction(_ABORT_S)
            raise _failure(error, self._batches) from error
        self._producer, self._last = producer, token

    def _produce(self, producer: Any, key: bytes | None, value: bytes | None, values: tuple[bytes | None, ...]) -> None:
        headers = [(name, bytes(text)) for name, text in zip(self._headers, values, strict=True) if text is not None]
        while True:
            try:
                producer.produce(self._topic, value, key=key, headers=headers)
                producer.poll(0)
                return
            except BufferError:
                producer.poll(1.0)


def _failure(error: KafkaException, transactional_id: str) -> PenstockError:
    """AwayError if it passes by itself; else the reason."""
    fault = error.args[0]
    if fault.name() in OF_THE_RECORD:
        return PenstockError(f"a result cannot be written: {fault.str()}")
    if fault.name() in _FENCED:
        return PenstockError(
            f"another process writes with the transactional id {transactional_id}, or this transaction took too long: "
            f"{fault.str()}"
        )
    return AwayError(fault.str())

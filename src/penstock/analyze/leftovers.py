"""Checkpoints of queries that the app no longer declares: they are listed, and removed when that is ordered."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import KafkaException

from penstock.analyze.checkpoints import Checkpoint, checkpoint_names
from penstock.analyze.order_logs import Log, first_pending
from penstock.client.factory import admin_client
from penstock.client.topic_identity import topic_ids
from penstock.client.topic_registry import read_registry
from penstock.errors import PenstockError
from penstock.events.headers import batches_topic, query_group
from penstock.events.query_order import Action, QueryOrder
from penstock.events.query_status import QueryState, QueryStatus
from penstock.kafka.target import KafkaTarget
from penstock.plan.plan import Plan

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

_ANSWER_S = 10.0
_GONE = ("UNKNOWN_TOPIC_OR_PART", "GROUP_ID_NOT_FOUND", "_UNKNOWN_GROUP")


class Leftovers:
    """The checkpoints of one app that belong to no query of it."""

    def __init__(self, plan: Plan, queue: KafkaTarget, folder: Path, logs: tuple[Log, ...]) -> None:
        self._plan = plan
        self._queue = queue
        self._logs = logs
        declared = {*plan.queries, *plan.dead_topics}
        self._checkpoints = {n: Checkpoint(folder, n) for n in checkpoint_names(folder) if n not in declared}
        self._dropping: dict[str, threading.Thread] = {}
        self._failures: dict[str, str] = {}
        self._orders: dict[str, QueryOrder] = {}

    def obey(self) -> Iterator[str]:
        """Begin to remove what is ordered to be dropped; a line for each that is removed, or cannot be."""
        for name, checkpoint in list(self._checkpoints.items()):
            thread = self._dropping.get(name)
            if thread is not None and not thread.is_alive():
                del self._dropping[name]
                failure = self._failures.pop(name, None)
                if failure is None:
                    del self._checkpoints[name]
                    yield f"query {name}: dropped"
                else:
                    yield f"query {name}: could not be dropped: {failure}; trying again"
            elif thread is None and (found := first_pending(self._logs, name, checkpoint.kept())):
                self._take(name, checkpoint, *found)

    def statuses(self, at_ms: int) -> list[QueryStatus]:
        """A report of each, and a last one of each that is dropped."""
        reason = "the app does not declare it: declare it again, or drop it with 'penstock queries drop'"
        found = [
            QueryStatus(
                app=self._plan.app, query=name, at_ms=at_ms, state=QueryState.UNDECLARED, reason=reason,
                writes=checkpoint.kept().writes, obeyed=sorted(checkpoint.kept().obeyed.values()),
            )
            for name, checkpoint in list(self._checkpoints.items())
        ]  # fmt: skip
        for name, order in list(self._orders.items()):
            if name not in self._checkpoints:
                del self._orders[name]
                found.append(
                    QueryStatus(
                        app=self._plan.app, query=name, at_ms=at_ms, state=QueryState.DROPPED, obeyed=[order.id]
                    )
                )
        return found

    def _take(self, name: str, checkpoint: Checkpoint, order: QueryOrder, log: str) -> None:
        if order.action is not Action.DROP:
            kept = checkpoint.kept()
            checkpoint.keep(replace(kept, obeyed={**kept.obeyed, log: order.id}))  # it has no query to obey it
            return
        self._orders[name] = order
        self._dropping[name] = threading.Thread(target=self._drop, args=(name, checkpoint), name="drop", daemon=True)
        self._dropping[name].start()

    def _drop(self, name: str, checkpoint: Checkpoint) -> None:
        """The checkpoint goes last: after a crash in the middle it is still there, and so is the order."""
        try:
            writes, admin = checkpoint.kept().writes, admin_client(self._queue)
            topics = dropped_topics(self._plan, name, writes)
            if writes in topics and not self._is_ours(writes, admin):
                topics.remove(writes)
            futures = [*admin.delete_topics(topics, request_timeout=_ANSWER_S).values()]
            futures += admin.delete_consumer_groups([query_group(self._plan.app, name)]).values()
            for future in futures:
                try:
                    future.result(_ANSWER_S)
                except KafkaException as error:
                    if error.args[0].name() not in _GONE:
                        raise
            checkpoint.remove()
        except (KafkaException, OSError, PenstockError) as error:
            self._failures[name] = str(error)

    def _is_ours(self, topic: str, admin: AdminClient) -> bool:
        """Whether this app made the topic that is there now: one that it adopted, or that others made, stays."""
        made = read_registry(self._queue).get(topic)
        if made is None or made.adopted or made.app != self._plan.app:
            return False
        return topic_ids(admin, [topic]).get(topic) == made.topic_id


def dropped_topics(plan: Plan, name: str, writes: str) -> list[str]:
    """The topics that go with a query: where it wrote, unless the app still has that topic, and its batch tokens."""
    still = {*plan.topics, *plan.dead_topics}
    return [topic for topic in (writes, batches_topic(plan.app, name)) if topic and topic not in still]

"""Commits how far each query has come as consumer group penstock.APP.QUERY: every Kafka tool shows its lag."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import Mapping

from penstock.client.group_commits import GroupCommits
from penstock.errors import PenstockError
from penstock.events.headers import query_group
from penstock.events.query_status import Positions
from penstock.kafka.target import KafkaTarget

_RETRY_S = 1.0


class GroupPositions:
    """A thread that commits what it is told. Nothing starts from these offsets: a query goes on from its checkpoint."""

    def __init__(self, queue: KafkaTarget, app: str) -> None:
        self._commits = GroupCommits(queue)
        self._app = app
        self._wanted: Mapping[str, Positions] = {}
        self._committed: dict[str, Positions] = {}
        self._told = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="positions", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def commit(self, positions: Mapping[str, Positions]) -> None:
        """Commit these soon, by query, if they have changed."""
        self._wanted = positions
        self._told.set()

    def end(self, within_s: float) -> None:
        """Commit what was told last, if the queue answers."""
        self._stopping.set()
        self._told.set()
        self._thread.join(within_s)

    def _run(self) -> None:
        is_last = False
        while not is_last:
            self._told.wait()
            self._told.clear()
            is_last = self._stopping.is_set()
            try:
                if not self._commit_changed():
                    self._stopping.wait(_RETRY_S)  # the queue may be away: the next report asks again
            except Exception:  # noqa: BLE001  # the top of a loop: the queries do not need it
                sys.stderr.write(f"positions could not be committed:\n{traceback.format_exc()}")
                self._stopping.wait(_RETRY_S)
        self._commits.close()

    def _commit_changed(self) -> bool:
        """Whether all are committed. A topic that was deleted is in the way of its own query alone."""
        is_done = True
        for query, positions in self._wanted.items():
            if positions and positions != self._committed.get(query):
                offsets = {topic: {int(part): at for part, at in parts.items()} for topic, parts in positions.items()}
                try:
                    self._commits.commit(query_group(self._app, query), offsets)
                except PenstockError:
                    is_done = False
                else:
                    self._committed[query] = positions
        return is_done

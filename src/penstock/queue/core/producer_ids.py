"""Ids for producers, never given twice."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import ErrorCode
from penstock.queue.core.catalog import Catalog
from penstock.queue.core.catalog_changes import Change, ProducerIdsReserved
from penstock.queue.core.metadata_log import MetaLog

BLOCK = 1_000  # ids reserved with one durable record; a restart skips what is left of them

OnProducerId = Callable[[ErrorCode, int], None]


class ProducerIds:
    """Gives an id once it is durable that no start gives it again."""

    def __init__(self, catalog: Catalog, changes: MetaLog) -> None:
        self._catalog = catalog
        self._changes = changes
        self._next = catalog.producer_ids_below

    def take(self, done: OnProducerId, now_ms: int) -> bool:
        """Give a new id to `done`; False if too many changes wait already."""

        def plan() -> list[Change]:
            if self._next < self._catalog.producer_ids_below:
                return []
            return [ProducerIdsReserved(self._catalog.producer_ids_below + BLOCK)]

        def finish(code: ErrorCode) -> None:
            if code:
                done(code, -1)
                return
            producer_id = self._next
            self._next += 1
            done(ErrorCode.NONE, producer_id)

        return self._changes.submit(plan, finish, now_ms)

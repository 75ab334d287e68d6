"""The lag of consumer groups for GET /metrics: read off the loop at a scrape, and kept for some seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress

from penstock.client.group_lags import GroupLags, GroupOffsets
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget
from penstock.metrics import family

KNOWN_S = 5.0  # Prometheus asks every 15 s; several scrapes share an answer
WITHIN_S = 3.0
GROUPS_MAX = 100  # each is a request to the queue, and a line for each topic


class GroupMetrics:
    """Make it where a loop runs."""

    def __init__(self, queue: KafkaTarget, topics: Sequence[str]) -> None:
        self._offsets = GroupOffsets(queue, topics, GROUPS_MAX)
        self._loop = asyncio.get_running_loop()
        self._found = GroupLags()
        self._known_until_s = 0.0
        self._asking: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Ask the queue again if the last answer is old; waits for the new one, within bounds."""
        if self._loop.time() < self._known_until_s:
            return
        if self._asking is None or self._asking.done():
            self._asking = self._loop.create_task(self._ask())
        await asyncio.wait([self._asking], timeout=WITHIN_S)

    async def _ask(self) -> None:
        with suppress(PenstockError):  # then the last answer stands: the queue's absence is told elsewhere
            self._found = await asyncio.to_thread(self._offsets.lags, WITHIN_S)
        self._known_until_s = self._loop.time() + KNOWN_S

    async def close(self) -> None:
        """Wait for an answer under way, and ask no more."""
        if self._asking is not None:
            await asyncio.wait([self._asking], timeout=WITHIN_S)
        await asyncio.to_thread(self._offsets.close)

    def lines(self) -> Iterator[str]:
        """The Prometheus text, a line each."""
        yield from family(
            "penstock_group_lag", "gauge", "Records behind the committed positions of a consumer group, by topic.",
            (({"group": group, "topic": topic}, lag) for (group, topic), lag in sorted(self._found.lags.items())),
        )  # fmt: skip
        yield from family(
            "penstock_groups_left_out", "gauge", f"Consumer groups beyond the first {GROUPS_MAX}, without a lag here.",
            [({}, self._found.left_out)],
        )  # fmt: skip

"""The largest record batch that each topic takes: max.message.bytes as the queue has it, asked for again and again."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import KafkaException

from penstock.client.factory import admin_client
from penstock.kafka.target import KafkaTarget

SETTING = "max.message.bytes"
ANSWER_S = 5.0
START_S = 2.0  # an edge serves without a queue; where one is there, it answers within milliseconds
EVERY_S = 30.0
SOON_S = 1.0  # until the queue has answered for the first time, and at most this often on request

# Such a queue tells no limit to this client, now or later: it is an answer. Any other error passes.
UNTOLD = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION")

OnLimit = Callable[[str, int], None]


class TopicLimits:
    """Asks while an edge runs. Make it where a loop runs."""

    def __init__(self, queue: KafkaTarget, topics: Sequence[str], on_failure: Callable[[BaseException], None]) -> None:
        """`on_failure` is called when it cannot ask any more: limits that change would not be seen."""
        self._on_failure = on_failure
        self._kinds: Any = importlib.import_module("confluent_kafka.admin")
        self._client: Any = admin_client(queue)
        self._topics = topics
        self._limits: dict[str, int] = {}
        self._on_limit: OnLimit = lambda topic, bytes_max: None
        self._loop = asyncio.get_running_loop()
        self._lock = asyncio.Lock()
        self._asked_s = self._answered_s = -1.0
        self._wanted = asyncio.Event()
        self._following: asyncio.Task[None] | None = None

    def bytes_max(self, topic: str) -> int | None:
        """The largest batch of a topic; None while the queue has not told it, or if it tells it not to this client."""
        return self._limits.get(topic)

    async def start(self) -> None:
        """Ask once, for a short time; then again and again until `close`."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.refresh(), START_S)
        self._following = asyncio.create_task(self._follow())
        self._following.add_done_callback(self._on_done)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (wrong := task.exception()) is not None:
            self._on_failure(wrong)

    def on_limit(self, call: OnLimit) -> None:
        """Call this for each limit that is new or has changed, from now on."""
        self._on_limit = call

    def want(self) -> None:
        """Ask soon: a limit may have changed. It costs nothing to call this often."""
        self._wanted.set()

    async def refresh(self) -> bool:
        """Ask now; whether the queue has answered. Calls at the same time share a request."""
        since_s = self._loop.time()
        async with self._lock:
            if self._asked_s < since_s:
                self._asked_s = self._loop.time()
                # Shielded: an answer that comes too late for this caller is taken all the same.
                await asyncio.shield(self._loop.create_task(self._ask(self._asked_s)))
        return self._answered_s >= since_s

    async def _ask(self, asked_s: float) -> None:
        resources = [self._kinds.ConfigResource(self._kinds.ResourceType.TOPIC, name) for name in self._topics]
        asked = self._client.describe_configs(resources, request_timeout=ANSWER_S) if resources else {}
        answers = await asyncio.gather(*map(asyncio.wrap_future, asked.values()), return_exceptions=True)
        is_answered = True
        for resource, answer in zip(asked, answers, strict=True):
            if isinstance(answer, KafkaException):
                is_answered &= answer.args[0].name() in UNTOLD
            elif isinstance(answer, BaseException):
                raise answer
            else:
                self._take(resource.name, int(answer[SETTING].value))
        if is_answered:
            self._answered_s = max(self._answered_s, asked_s)

    def _take(self, topic: str, bytes_max: int) -> None:
        if self._limits.get(topic) != bytes_max:
            self._limits[topic] = bytes_max
            self._on_limit(topic, bytes_max)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(SOON_S)
            if self._answered_s >= 0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wanted.wait(), EVERY_S)
            self._wanted.clear()
            await self.refresh()

    async def close(self) -> None:
        """Ask no more."""
        if self._following is not None:
            self._following.cancel()

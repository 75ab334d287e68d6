"""What the answers of a queue to DescribeConfigs mean; a real queue answers in tests/edge/test_ingest_sizes.py."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from penstock.client import topic_limits
from penstock.client.topic_limits import SETTING, TopicLimits
from penstock.kafka.target import KafkaTarget


class Admin:
    """Answers each request with what was planned: a limit or an error code."""

    def __init__(self, *planned: int | str) -> None:
        self._planned = list(planned)
        self.asked = 0

    def describe_configs(self, resources: list[Any], request_timeout: float) -> dict[Any, Future[Any]]:
        self.asked += 1
        planned = self._planned.pop(0)
        answer: Future[Any] = Future()
        if isinstance(planned, int):
            answer.set_result({SETTING: SimpleNamespace(value=str(planned))})
        else:
            answer.set_exception(KafkaException(KafkaError(getattr(KafkaError, planned))))
        return {resources[0]: answer}


def fail(wrong: BaseException) -> None:
    raise AssertionError(f"the reader of limits has ended: {wrong!r}")


def asked(*planned: int | str) -> list[tuple[bool, int | None]]:
    """What is known after each answer."""

    async def run() -> list[tuple[bool, int | None]]:
        limits = TopicLimits(KafkaTarget.parse("127.0.0.1:1"), ["t"], fail)
        limits._client = Admin(*planned)
        return [(await limits.refresh(), limits.bytes_max("t")) for _ in planned]

    return asyncio.run(run())


@pytest.mark.parametrize("code", ["_TIMED_OUT", "_TRANSPORT", "REQUEST_TIMED_OUT", "UNKNOWN_TOPIC_OR_PART", "UNKNOWN"])
def test_a_queue_that_does_not_answer_changes_nothing(code: str) -> None:
    assert asked(code, 5_000, code) == [(False, None), (True, 5_000), (False, 5_000)]


@pytest.mark.parametrize("code", ["TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION"])
def test_a_queue_that_tells_no_limit_has_answered(code: str) -> None:
    assert asked(code) == [(True, None)]


def test_each_change_is_told_once() -> None:
    async def run() -> list[tuple[str, int]]:
        told: list[tuple[str, int]] = []
        limits = TopicLimits(KafkaTarget.parse("127.0.0.1:1"), ["t"], fail)
        limits._client = Admin(1_000, 1_000, 2_000)
        limits.on_limit(lambda topic, bytes_max: told.append((topic, bytes_max)))
        for _ in range(3):
            await limits.refresh()
        return told

    assert asyncio.run(run()) == [("t", 1_000), ("t", 2_000)]


def test_calls_at_the_same_time_share_requests() -> None:
    """The first call asks; all that came while it was under way share one more, which began after they came."""

    async def run() -> int:
        limits = TopicLimits(KafkaTarget.parse("127.0.0.1:1"), ["t"], fail)
        admin = limits._client = Admin(*range(1_000, 1_100))
        assert all(await asyncio.gather(*[limits.refresh() for _ in range(100)]))
        return admin.asked

    assert asyncio.run(run()) <= 2


def test_an_answer_that_comes_too_late_for_its_caller_is_taken() -> None:
    async def run() -> int | None:
        limits = TopicLimits(KafkaTarget.parse("127.0.0.1:1"), ["t"], fail)
        answer: Future[Any] = Future()
        told = asyncio.Event()
        limits.on_limit(lambda *_: told.set())
        limits._client = SimpleNamespace(describe_configs=lambda resources, request_timeout: {resources[0]: answer})
        caller = asyncio.create_task(limits.refresh())
        await asyncio.sleep(0)
        while not limits._lock.locked():
            await asyncio.sleep(0)
        caller.cancel()
        await asyncio.wait([caller])
        answer.set_result({SETTING: SimpleNamespace(value="7")})
        await asyncio.wait_for(told.wait(), 30)
        return limits.bytes_max("t")

    assert asyncio.run(run()) == 7


def test_a_reader_of_limits_that_ends_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> BaseException:
        ended: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        limits = TopicLimits(KafkaTarget.parse("127.0.0.1:1"), ["t"], ended.set_result)
        limits._client = Admin(1_000)  # the second request raises IndexError
        await limits.start()
        return await asyncio.wait_for(ended, 30)

    monkeypatch.setattr(topic_limits, "SOON_S", 0.0)
    monkeypatch.setattr(topic_limits, "EVERY_S", 0.0)
    assert isinstance(asyncio.run(run()), IndexError)

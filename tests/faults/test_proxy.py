"""The proxy between clients and broker: in a process that can be killed and paused, and counting what it really did."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.drills.broker_process import BrokerProcess
from penstock.drills.proxy import LossyProxy
from penstock.drills.proxy_process import ProxyProcess
from penstock.kafka.wire.apis import ApiKey
from penstock.kafka.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from penstock.kafka.wire.messages.metadata import MetadataRequest, MetadataResponse
from proof.abuse.raw_client import PlainClient, frame_of
from proof.storm.client_processes import Cast
from proof.storm.fault_injector import Director
from proof.storm.fault_schedule import Deed, Weather
from proof.storm.target_broker import PenstockStage

DEADLINE_S = 60.0
SILENCE_S = 0.3
Start = Callable[..., BrokerProcess]


def ask(client: PlainClient) -> int:
    """How many brokers it is told of."""
    return len(client.ask(MetadataRequest(topics=[]), 9, MetadataResponse).brokers)


def until(happened: Callable[[], object]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not happened():
        assert time.monotonic() < deadline


@pytest.mark.timeout(180)
def test_a_proxy_is_killed_paused_and_told_what_to_do(start_broker: Start, tmp_path: Path) -> None:
    """Killed, it ends its connections and nobody listens; it comes back on its port, and counts on."""
    with ProxyProcess(tmp_path) as proxy:
        proxy.target_port = start_broker().port
        proxy.start()
        _lose_one(proxy)
        with PlainClient(proxy.port) as client:
            assert ask(client) == 1
            proxy.kill()
            assert client.drain() == 0
        with pytest.raises(ConnectionRefusedError):
            PlainClient(proxy.port)
        assert not proxy.tell("cut")
        assert not proxy.pause()
        proxy.start()
        _lose_one(proxy)
        assert (proxy.swallowed, proxy.is_running, proxy.has_failed) == (2, True, False)

        proxy.pause()
        with PlainClient(proxy.port) as client:
            client.send(frame_of(MetadataRequest(topics=[]), 9))
            assert select.select([client.sock], [], [], SILENCE_S)[0] == []
            proxy.wake()
            assert client.receive()
        proxy.tell("no such command")
        until(lambda: proxy.has_failed)
        assert "no such command" in proxy.said


class _Cuts(Weather):
    """Nothing but cuts, one after the other."""

    def next(self) -> Deed:
        return Deed("cut", 0.0)


@pytest.mark.timeout(180)
def test_a_deed_that_nobody_heard_was_not_done(tmp_path: Path) -> None:
    """A dead proxy cuts nothing, and the storm does not say so; the deed is done when the proxy is back."""
    with ProxyProcess(tmp_path) as proxy:
        stage = PenstockStage(tmp_path / "data", tmp_path, proxy.port)
        stage.start()
        try:
            proxy.target_port = stage.port
            weather = _Cuts(1, ["nobody"], disk=False, syncs=False)
            director = Director(stage, proxy, Cast([], "", tmp_path, 1), weather, None)
            director.play(SILENCE_S, lambda _: None)
            assert director.done == []
            proxy.start()
            director.play(0.0, lambda _: None, deeds_min=1)
            assert [done.kind for done in director.done] == ["cut"]
        finally:
            stage.kill()


def _lose_one(proxy: ProxyProcess) -> None:
    """Ask until an answer is swallowed: the proxy hears what it is told a moment later."""
    before = proxy.swallowed
    assert proxy.tell("swallow", ApiKey.METADATA, 1)
    with PlainClient(proxy.port) as client, pytest.raises(EOFError):
        until(lambda: not ask(client))
    assert proxy.swallowed == before + 1


@pytest.mark.timeout(180)
def test_only_what_arrived_after_its_client_came_again_counts_as_held_back(start_broker: Start) -> None:
    """Not what was let go because the storm was over, nor what was lost with its connection."""
    with LossyProxy(start_broker().port) as proxy:
        with _held(proxy) as first:
            proxy.calm()
            assert first.receive()
            assert proxy.held_back == 0
        with _held(proxy) as first:
            _come_again(proxy)
            assert first.receive()
            until(lambda: proxy.held_back == 1)
        with _held(proxy) as first:
            proxy.cut()
            assert first.drain() == 0
            _come_again(proxy)
            until(lambda: not proxy.holding)
        _come_again(proxy)
        assert proxy.held_back == 1


def _held(proxy: LossyProxy) -> PlainClient:
    """A client whose request is kept back."""
    proxy.hold(ApiKey.METADATA, ApiKey.API_VERSIONS)
    client = PlainClient(proxy.port)
    client.send(frame_of(MetadataRequest(topics=[]), 9))
    until(lambda: proxy.holding)
    return client


def _come_again(proxy: LossyProxy) -> None:
    """The next life of that client, which is answered."""
    with PlainClient(proxy.port) as client:
        assert client.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).api_keys

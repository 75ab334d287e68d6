"""A node under any script of clients and disks: every request is answered once, in order, and truly."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from stage.batches import batch
from stage.logs import cut
from stage.nodes import Stage, ack_of, fetch_request, produce_request, records_of

from penstock.kafka.records.batch import decode_header
from penstock.kafka.wire.messages.metadata import MetadataRequest
from penstock.kafka.wire.messages.produce import ProduceResponse

CLIENTS = (1, 2, 3)
ACTIONS = ["produce", "produce", "repeat", "fetch", "wait", "metadata", "sync", "full", "time", "leave"]


@settings(max_examples=80, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), script=st.lists(st.sampled_from(ACTIONS), min_size=5, max_size=60))
def test_every_request_is_answered_once_in_order_and_truly(seed: int, script: list[str]) -> None:
    """What an answer says was stored can be read at that offset; nothing is stored twice."""
    chance = Random(seed)
    stage = Stage(inflight_bytes_max_connection=3000)
    stage.topic()
    for client in CLIENTS[1:]:
        stage.connect(client)
    sent: dict[int, list[int]] = {client: [] for client in CLIENTS}
    values: dict[int, bytes] = {}
    last: dict[int, tuple[bytes, bytes]] = {}
    acknowledged: dict[int, bytes] = {}

    def take(client: int) -> None:
        for correlation, answer in stage.answers(client):
            assert sent[client].pop(0) == correlation
            if isinstance(answer, ProduceResponse) and ack_of(answer).error_code == 0:
                assert acknowledged.setdefault(ack_of(answer).base_offset, values[correlation]) == values[correlation]

    for number, action in enumerate(script):
        client = chance.choice(CLIENTS)
        if action in ("produce", "repeat"):
            value = b"%d" % number + b"x" * chance.randrange(400)
            data = bytes(batch([value], producer=(number, 0, 0)))
            if action == "repeat" and client in last:
                value, data = last[client]
            last[client] = value, data
            correlation = stage.send(produce_request(data), 12, client)
            values[correlation] = value
            sent[client].append(correlation)
        elif action in ("fetch", "wait"):
            request = fetch_request(0, wait_ms=1000 if action == "wait" else 0, min_bytes=1 + chance.randrange(2000))
            sent[client].append(stage.send(request, 12, client))
        elif action == "metadata":
            sent[client].append(stage.send(MetadataRequest([]), 12, client))
        elif action == "sync":
            stage.end_syncs()
        elif action == "full":
            stage.disk.faults.room = chance.choice([None, 0, 100])
        elif action == "time":
            stage.wait(chance.randrange(1500))
        elif action == "leave":
            take(client)
            stage.drop(client)
            sent[client].clear()
            stage.connect(client)
        for one in CLIENTS:
            take(one)
    stage.disk.faults.calm_down()
    for _ in script:  # a client that was paused goes on after a sync, and may then wait for the next, or for its time
        stage.end_syncs()
        stage.wait(5000)
    for client in CLIENTS:
        take(client)
        assert sent[client] == []
    # A partition that a full disk kept from being opened is opened by whoever asks for it next.
    found = {decode_header(one).base_offset: one for one in cut(records_of(stage.fetch(0)))}
    assert (stage.node.room.held_bytes, stage.closed, stage.node.stopped) == (0, [], {})
    stored = [decode_header(one).producer_id for one in found.values()]
    assert len(stored) == len(set(stored))
    for offset, value in acknowledged.items():
        assert value in found[offset]

"""Clients that join a stream ahead of its tail get every record behind their position once, with tokens that resume."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.client.record import Record
from penstock.connectors.live.backlog import Backlog
from penstock.connectors.live.envelope import Body, Message
from penstock.connectors.live.position_token import decode_token
from penstock.connectors.live.recent import Recent
from penstock.connectors.live.stream import Client, Stream, TopicState

TOPICS = ("a", "b")
PLACES = [("a", 0), ("a", 1), ("b", 0)]

# Which place the tail hands a record of; or how far ahead of the tail, in each place, a client is that joins now.
STEPS = st.lists(st.sampled_from(PLACES) | st.tuples(*[st.integers(0, 3)] * 3), max_size=60)


class Crowd:
    """A stream of two topics and the clients that joined it; what came before is not of interest."""

    def __init__(self) -> None:
        self.topics = [
            TopicState("a", True, Recent({0: 0, 1: 0}, 10, 1000)),
            TopicState("b", True, Recent({0: 0}, 10, 1000)),
        ]
        self.stream = Stream(self.topics)
        self.joined: list[tuple[Client, dict[tuple[str, int], int]]] = []

    def hand_out(self, place: tuple[str, int]) -> None:
        body = Body(Record(*place, self.stream.positions[place], 0, None, b"1", []))
        next(topic for topic in self.topics if topic.topic == place[0]).advance(body)
        self.stream.publish(body)

    def join(self, ahead: tuple[int, ...]) -> None:
        backlog: Backlog[Message] = Backlog("disconnect", 1000, 10**6)
        client = Client(backlog, None, lambda: None, lambda _: False)
        positions = {place: self.stream.positions[place] + more for place, more in zip(PLACES, ahead, strict=True)}
        self.joined.append((client, dict(positions)))
        self.stream.attach(client, positions)


@given(STEPS)
def test_everybody_gets_everything_behind_its_position_once(steps: list[tuple[str, int] | tuple[int, ...]]) -> None:
    """In the order of each partition, and every token names exactly what the client has."""
    crowd = Crowd()
    for step in steps:
        if step in PLACES:
            crowd.hand_out(step)  # type: ignore[arg-type]
        else:
            crowd.join(step)  # type: ignore[arg-type]
    for _ in range(4):  # the tail comes as far as everybody is
        for place in PLACES:
            crowd.hand_out(place)
    ends = crowd.stream.positions
    for client, stood in crowd.joined:
        for message in client.backlog.take(10**6):
            token = decode_token(message.token, TOPICS)
            (place,) = [place for place in PLACES if token[place] != stood[place]]
            assert token[place] == stood[place] + 1
            assert f'"offset":{stood[place]},'.encode() in message.json
            stood = token
        assert stood == ends
        assert client in crowd.stream.clients

"""The path of a delivery: its topics, its guarantee, and the link that limits it."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.app import Delivery, Query
from penstock.guarantee import Guarantee, weakest
from penstock.plan.plan import Path, TopicPlan


def path_of(delivery: Delivery, writer: Mapping[str, Query], topics: Mapping[str, TopicPlan]) -> Path:
    """The path that ends in a delivery."""
    links = [delivery.topic]
    for name in links:
        if name in writer:
            links += [before for before in writer[name].reads if before not in links]
    links.reverse()
    whole = weakest(*(topics[name].guarantee for name in links))
    weak = "" if all(topics[name].guarantee == whole for name in links) else _weak_link(links, whole, topics)
    return Path(delivery, tuple(links), _drawn(delivery.topic, writer, set()), whole, weak)


def _drawn(topic: str, writer: Mapping[str, Query], seen: set[str]) -> str:
    """How events reach a topic; what leads to a topic that several queries read is drawn once."""
    if topic not in writer or topic in seen:
        return topic
    seen.add(topic)
    inputs = [_drawn(name, writer, seen) for name in writer[topic].reads]
    joined = " + ".join(inputs)
    return f"({joined}) -> {topic}" if len(inputs) > 1 else f"{joined} -> {topic}"


def _weak_link(links: list[str], whole: Guarantee, topics: Mapping[str, TopicPlan]) -> str:
    """The first topic whose removal strengthens the path; if there is none, the first of the weakest topics."""
    for name in links:
        others = [topics[other].guarantee for other in links if other != name]
        if weakest(*others) != whole:
            return name
    return next((name for name in links if topics[name].guarantee == whole), links[0])

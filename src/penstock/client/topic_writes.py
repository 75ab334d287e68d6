"""Which topics do not take writes, by the outcome of the last event for each partition. Pure: time is told."""

from __future__ import annotations

FAULT_KNOWN_S = 60.0
# They say something about one event, or about this process, and nothing about the topic.
_OF_THE_EVENT = frozenset({
    "MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_MSG", "INVALID_TIMESTAMP",
    "_MSG_SIZE_TOO_LARGE", "_QUEUE_FULL", "_PURGE_QUEUE", "_PURGE_INFLIGHT", "_INVALID_ARG",
})  # fmt: skip
_ANY = -1  # an event that failed before it had a partition

Place = tuple[str, int]


class TopicWrites:
    """A partition is at fault from an event that it did not take until one that it takes.

    A fault is forgotten after a minute without another: where nothing is sent because the edge is not ready, no
    event could show that the partition takes writes again.
    """

    def __init__(self) -> None:
        self._faults: dict[Place, tuple[str, float]] = {}

    def __bool__(self) -> bool:
        """Whether any partition is at fault: only then a success tells something."""
        return bool(self._faults)

    def failed(self, topic: str, partition: int, name: str, text: str, now_s: float) -> None:
        """An event was not stored; `name` is Kafka's name of the error, or librdkafka's."""
        if name not in _OF_THE_EVENT:
            self._faults[topic, max(partition, _ANY)] = text, now_s

    def stored(self, topic: str, partition: int) -> None:
        """An event was stored."""
        self._faults.pop((topic, partition), None)
        self._faults.pop((topic, _ANY), None)

    def forget(self) -> None:
        """The queue was away, and answers again: that explains what failed before."""
        self._faults.clear()

    def sentences(self, now_s: float) -> list[str]:
        """One for each topic at fault."""
        self._faults = {place: (why, at) for place, (why, at) in self._faults.items() if now_s - at < FAULT_KNOWN_S}
        by_topic: dict[str, list[Place]] = {}
        for topic, partition in sorted(self._faults):
            by_topic.setdefault(topic, []).append((topic, partition))
        return [
            f"topic {topic} cannot be written: {_where(places)} did not take its last event "
            f"({self._faults[places[0]][0]}): look at the queue's log, its disk and its /health"
            for topic, places in by_topic.items()
        ]


def _where(places: list[Place]) -> str:
    numbers = [str(partition) for _, partition in places if partition != _ANY]
    if not numbers:
        return "the queue"
    return f"partition{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"

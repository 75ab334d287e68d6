"""How far the consumer groups of the queue are behind in some topics."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]  # it is its home

from penstock.client.factory import admin_client
from penstock.client.offsets import is_unknown
from penstock.client.tail_reader import LAST, TailReader
from penstock.errors import PenstockError
from penstock.kafka.target import KafkaTarget

Place = tuple[str, int]


class GroupLags(NamedTuple):
    """Records behind the committed positions, by group and topic; `left_out` groups were not asked."""

    lags: Mapping[tuple[str, str], int] = {}
    left_out: int = 0


class GroupOffsets:
    """Asks the queue; every call blocks, within bounds. One thread may close it while another asks."""

    def __init__(self, queue: KafkaTarget, topics: Sequence[str], groups_max: int) -> None:
        self._queue = queue
        self._admin = admin_client(queue)
        self._topics = frozenset(topics)
        self._groups_max = groups_max
        self._tails: TailReader | None = None  # most topics have no markers
        self._read_ends: dict[Place, tuple[int, int]] = {}  # an end of the queue, and that of the records below it
        self._tails_lock = threading.Lock()  # a consumer must not be closed while another thread polls it
        self._is_closed = False

    def lags(self, within_s: float) -> GroupLags:
        """The lags of all groups that have committed in the topics.

        PenstockError if the queue does not answer, or after `close`.
        """
        self._must_be_open()
        deadline = time.monotonic() + within_s

        def left_s() -> float:
            return max(0.1, deadline - time.monotonic())

        try:
            listed = self._admin.list_consumer_groups(request_timeout=left_s()).result(left_s())
            groups = sorted(group.group_id for group in listed.valid)
            asked = groups[: self._groups_max]
            # A request for one group each, all under way at once.
            answers = {
                group: self._admin.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(group)], request_timeout=left_s()
                )[group]
                for group in asked
            }
            committed = {group: self._committed(answer, left_s()) for group, answer in answers.items()}
            places = sorted({place for found in committed.values() for place in found})
            ends = self._ends(places, left_s()) if places else {}
            ends |= self._record_ends(committed, ends, left_s())
        except (KafkaException, TimeoutError) as error:
            raise PenstockError(f"the queue does not say how far groups are: {error}") from None
        return GroupLags(lags_of(committed, ends), len(groups) - len(asked))

    def _record_ends(
        self, committed: Mapping[str, Mapping[Place, int]], ends: Mapping[Place, int], within_s: float
    ) -> dict[Place, int]:
        """The ends without the markers behind the last record, where a group stands so near that it may be there.

        A tail is read once for each end: what was found below an end stays so until the end moves.
        """
        near = {
            place: ends[place]
            for positions in committed.values()
            for place, position in positions.items()
            if place in ends and 0 < ends[place] - position <= LAST
        }
        # Each scrape forgets what moved, and partitions that are gone: their topic may be made again.
        known = {place: read for place, read in self._read_ends.items() if ends.get(place) == read[0]}
        if new := {place: end for place, end in near.items() if place not in known}:
            with self._tails_lock:
                self._must_be_open()
                if self._tails is None:
                    self._tails = TailReader(self._queue)
                found = self._tails.record_ends(new, within_s)
            known |= {place: (new[place], record_end) for place, record_end in found.items()}
        self._read_ends = known
        return {place: known[place][1] for place in near if place in known}

    def close(self) -> None:
        """Ask no more; waits for the reads of a call of `lags` under way."""
        self._is_closed = True
        with self._tails_lock:
            if self._tails is not None:
                self._tails.close()
                self._tails = None

    def _must_be_open(self) -> None:
        if self._is_closed:
            raise PenstockError("the reader of the offsets of groups is closed")

    def _committed(self, answer: Any, within_s: float) -> dict[Place, int]:
        try:
            found = answer.result(within_s).topic_partitions
        except KafkaException:
            return {}  # a group that was deleted meanwhile, or whose coordinator is away: the others are worth it
        return {
            (place.topic, place.partition): place.offset
            for place in found
            if place.topic in self._topics and place.offset >= 0 and place.error is None
        }

    def _ends(self, places: Sequence[Place], within_s: float) -> dict[Place, int]:
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        answers = self._admin.list_offsets(
            {TopicPartition(*place): latest for place in places}, request_timeout=within_s
        )
        ends = {}
        for place, answer in answers.items():
            try:
                offset = answer.result(within_s).offset
            except KafkaException:
                continue  # deleted, or its leader is away
            if not is_unknown(offset):
                ends[place.topic, place.partition] = offset
        return ends


def lags_of(committed: Mapping[str, Mapping[Place, int]], ends: Mapping[Place, int]) -> dict[tuple[str, str], int]:
    """The sum over the partitions of a topic in which a group has committed; without those whose end is unknown."""
    lags: dict[tuple[str, str], int] = {}
    for group, positions in committed.items():
        for place, position in positions.items():
            if place in ends:
                name = group, place[0]
                lags[name] = lags.get(name, 0) + max(0, ends[place] - position)
    return lags

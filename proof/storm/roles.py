"""What clients do in the storm, whatever their kind, and what they record of it."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Sequence
from typing import NamedTuple

from penstock.assure.history import (
    Assign,
    Begin,
    Commit,
    Committed,
    Decide,
    Ended,
    Outcome,
    Poll,
    Send,
    Settle,
)
from penstock.drills.recording_clients import Place
from proof.storm.client_library import Face, Reading, Records, Writing
from proof.storm.recording import StampedRecorder

RECORDS, COPIES, QUICK = "records", "copies", "quick"
RECORDS_PARTITIONS, COPIES_PARTITIONS = 4, 2
POLL_S = 0.2
FREEZE_WITHIN_S = 3.0
FLUSH_S = 60.0
RECORDS_PLACES = [Place(RECORDS, number) for number in range(RECORDS_PARTITIONS)]
COPIES_PLACES = [Place(COPIES, number) for number in range(COPIES_PARTITIONS)]
# Acknowledged before it is on disk, which survives kill -9; only producers without transactions write here.
QUICK_PLACE = Place(QUICK, 0)


class Freeze:
    """SIGUSR1 asks a client to stand still right before it next commits: the moment that hurts most."""

    def __init__(self) -> None:
        self._until = 0.0

    def ask(self) -> None:
        self._until = time.monotonic() + FREEZE_WITHIN_S

    def before_commit(self) -> None:
        """Stand still if that was asked for a moment ago; whoever asked wakes it, later than that."""
        if time.monotonic() < self._until:
            self._until = 0.0
            os.kill(os.getpid(), signal.SIGSTOP)


class Task(NamedTuple):
    """One life of one client."""

    face: Face
    address: str
    name: str
    life: int
    chance: random.Random
    recorder: StampedRecorder
    freeze: Freeze

    @property
    def process(self) -> str:
        """Its name in the history: each life is another process."""
        return f"{self.name}.{self.life}"

    def settled(self, place: Place, value: str, outcome: Outcome, offset: int | None) -> None:
        self.recorder.record(Settle(self.process, *place, value, outcome, offset))


class Writer:
    """An idempotent producer."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._sent = 0
        self._client = task.face.write(task.address, task.name, task.settled)

    def turn(self) -> None:
        task = self._task
        place = task.chance.choice([*RECORDS_PLACES, QUICK_PLACE])
        for _ in range(task.chance.randrange(1, 20)):
            value = f"{task.process}-{self._sent}"
            self._sent += 1
            task.recorder.record(Send(task.process, *place, value, task.process))
            self._client.send(place, value)
        self._client.turn(task.chance.uniform(0.05, 0.3))

    def finish(self) -> None:
        self._client.flush(FLUSH_S)


class Owner:
    """A transactional producer: it commits most of its transactions and aborts the others."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._begun = 0
        self._client = task.face.write(task.address, task.name, task.settled, task.name)

    def turn(self) -> None:
        self._transact(commit=self._task.chance.random() < 0.8)
        self._client.turn(self._task.chance.uniform(0.02, 0.3))

    def finish(self) -> None:
        """The last one is aborted: every storm has one such."""
        self._transact(commit=False)

    def _transact(self, *, commit: bool) -> None:
        task, client = self._task, self._client
        name = f"{task.process}-{self._begun}"
        self._begun += 1
        task.recorder.record(Begin(task.process, name))
        client.begin()
        for number in range(task.chance.randrange(1, 10)):
            place = task.chance.choice(RECORDS_PLACES)
            value = f"{name}-{number}"
            task.recorder.record(Send(task.process, *place, value, task.process, name))
            client.send(place, value)
        client.flush(FLUSH_S)
        end_transaction(task, client, name, commit=commit)


def end_transaction(task: Task, client: Writing, name: str, *, commit: bool) -> None:
    """Ask for the end and record the answer; what is raised leaves it unknown."""
    task.freeze.before_commit()
    task.recorder.record(Decide(task.process, name, commit))
    if commit:
        client.commit()
    else:
        client.abort()
    task.recorder.record(Ended(task.process, name, commit, Outcome.OK))


class Share:
    """The partitions that a reader has at the moment, each with the number of its assignment."""

    def __init__(self, task: Task, group: str | None, *, committed: bool) -> None:
        self._task = task
        self._group = group
        self._committed = committed
        self._count = 0
        self.assignments: dict[Place, int] = {}

    def give(self, places: Sequence[Place], offset: int | None = None) -> None:
        self._count += 1
        for place in places:
            self.assignments[place] = self._count
            given = Assign(self._task.process, self._count, *place, offset, self._committed, self._group)
            self._task.recorder.record(given)

    def take(self, places: Sequence[Place]) -> None:
        for place in places:
            self.assignments.pop(place, None)

    def polled(self, found: dict[Place, Records]) -> dict[Place, Records]:
        """Record what came for partitions that are still here; the rest belongs to somebody else."""
        mine = {place: records for place, records in found.items() if records and place in self.assignments}
        for place, records in mine.items():
            number = self.assignments[place]
            self._task.recorder.record(Poll(self._task.process, number, *place, tuple(records)))
        return mine


class Member:
    """A consumer in a group: it commits what it has seen."""

    def __init__(self, task: Task, group: str, *, committed: bool, newer: bool = False) -> None:
        self._task = task
        self._group = group
        self._share = Share(task, group, committed=committed)
        self._client = task.face.read(task.address, task.name, group, committed=committed, newer=newer)
        self._client.subscribe([RECORDS], self._share.give, self._share.take)

    def turn(self) -> None:
        task = self._task
        found = self._share.polled(self._client.poll(POLL_S))
        if not found:
            return
        positions = {place: records[-1][0] + 1 for place, records in found.items()}
        task.recorder.record(*(Commit(task.process, self._group, *place, to) for place, to in positions.items()))
        task.freeze.before_commit()
        try:
            self._client.commit(positions)
            outcome = Outcome.OK
        except Exception:  # noqa: BLE001  # every kind raises its own: a commit that is refused is no reason to end
            outcome = Outcome.UNKNOWN
        task.recorder.record(*(Committed(task.process, self._group, *place, outcome) for place in positions))

    def finish(self) -> None:
        self._client.close()


class Follower:
    """A consumer that reads everything from the beginning, by itself."""

    def __init__(self, task: Task, *, committed: bool) -> None:
        self._share = Share(task, None, committed=committed)
        self._client = task.face.read(task.address, task.name, task.name, committed=committed)
        self._share.give(RECORDS_PLACES, 0)
        self._client.assign(dict.fromkeys(RECORDS_PLACES, 0))

    def turn(self) -> None:
        self._share.polled(self._client.poll(POLL_S))

    def finish(self) -> None:
        self._client.close()


class Copier:
    """Consume, transform, produce: results and positions in one transaction.

    In a group, whoever lost a partition is fenced by its generation; with a partition of its own (`mine`), by its
    transactional id.
    """

    def __init__(self, task: Task, group: str, mine: Place | None) -> None:
        self._task = task
        self._group = group
        self._begun = 0
        # First fence the life before: its transaction ends, and with it its positions.
        self._writer = task.face.write(task.address, task.name, task.settled, task.name)
        self._reader: Reading = task.face.read(task.address, task.name, group, committed=True)
        self._share = Share(task, group, committed=True)
        if mine is None:
            self._reader.subscribe([RECORDS], self._share.give, self._share.take)
        else:
            start = self._reader.position_of_group(mine) or 0
            self._share.give([mine])
            self._reader.assign({mine: start})

    def turn(self) -> None:
        task = self._task
        found = self._share.polled(self._reader.poll(POLL_S))
        if not found:
            self._writer.turn(0)
            return
        name = f"{task.process}-{self._begun}"
        self._begun += 1
        task.recorder.record(Begin(task.process, name, self._group))
        self._writer.begin()
        for place, records in found.items():
            for offset, value in records:
                self._copy(name, place, offset, value)
        self._writer.flush(FLUSH_S)
        positions = {place: records[-1][0] + 1 for place, records in found.items()}
        task.recorder.record(*(Commit(task.process, self._group, *place, to, name) for place, to in positions.items()))
        self._writer.send_positions(positions, self._reader)
        commit = task.chance.random() < 0.9
        end_transaction(task, self._writer, name, commit=commit)
        if not commit:
            raise Restart("begins anew after an abort")

    def _copy(self, name: str, place: Place, offset: int, value: str) -> None:
        task = self._task
        to = Place(COPIES, place.partition % COPIES_PARTITIONS)
        copy, source = f"{value}@{name}", f"{place.topic}/{place.partition}/{offset}"
        task.recorder.record(Send(task.process, *to, copy, task.process, name, source))
        self._writer.send(to, copy)

    def finish(self) -> None:
        self._reader.close()


class Restart(Exception):
    """The positions in memory are no longer those of the group: a new life asks for them."""

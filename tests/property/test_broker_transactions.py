"""Owners of transactions, restarts and power cuts in any order: each transaction is seen whole, or not at all."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from stage.nodes import Stage
from stage.owners import TransactionalProducer, position
from stage.transactions import committed_values

from penstock.queue.core.events import Synced
from penstock.queue.core.partition import Partition
from penstock.queue.transactions.changes import State
from proof.sim.inode import Mood

ACTIONS = ["send", "send", "send", "hold", "commit", "commit", "abort", "other owner", "kill", "power", "wait"]
PARTITIONS = 2
TIMEOUT_MS = 20_000


class Play:
    """A node, one transactional id, its owner of the moment, and what a reader may see."""

    def __init__(self, seed: int, *, by_epoch: bool) -> None:
        self.chance = Random(seed)
        self.stage = Stage()
        self.stage.topic(partitions=PARTITIONS)
        self.by_epoch = by_epoch
        self.count = 0
        self.sure: list[set[str]] = []  # committed, and the owner was told so
        self.maybe: list[set[str]] = []  # it asked to commit, and was not answered
        self.position = 0
        self.positions: set[int] = {-1}
        self.own()

    def own(self) -> None:
        """A new owner begins, and whatever was open is aborted."""
        self.open: set[str] = set()
        self.held: int | None = None
        self.owner = TransactionalProducer(self.stage, by_epoch=self.by_epoch)
        for _ in range(3):
            if self.owner.init(TIMEOUT_MS) == 0:
                return
        raise AssertionError("a new owner is let in")

    def act(self, action: str) -> None:
        if action == "send":
            self.count += 1
            value = f"v{self.count}"
            if self.owner.send(value.encode(), partition=self.count % PARTITIONS) == 0:
                self.open.add(value)
            else:
                self.own()
        elif action == "hold":
            self.position += 1
            if self.owner.commit_offset(self.position) == 0:
                self.held = self.position
            else:
                self.own()
        elif action in ("commit", "abort"):
            self.end(commit=action == "commit")
        elif action == "other owner":
            self.own()
        elif action == "wait":
            self.stage.wait(self.chance.choice((1_000, TIMEOUT_MS + 1)))
            self.stage.end_syncs()
        else:
            self.restart(power=action == "power")

    def end(self, *, commit: bool) -> None:
        """Sometimes the node dies in the middle."""
        if not self.open and self.held is None:
            return
        is_lost = self.chance.random() < 0.4
        if not is_lost and self.owner.end(commit=commit) == 0:
            if commit:
                self.sure.append(self.open)
                self.positions = {self.held} if self.held is not None else self.positions
            self.open, self.held = set(), None
            return
        if is_lost:
            self.stage.send(self.owner.end_request(commit), 5 if self.by_epoch else 4)
            for _ in range(self.chance.randrange(6)):
                if self.stage.syncs:
                    sync = self.stage.syncs.pop(self.chance.randrange(len(self.stage.syncs)))
                    self.stage.step(Synced(sync.job, self.stage.run(sync)))
            if commit:
                self.maybe.append(self.open)
                self.positions = self.positions | ({self.held} if self.held is not None else set())
            self.restart(power=self.chance.random() < 0.5)
        self.own()

    def restart(self, *, power: bool) -> None:
        if power:
            self.stage.disk.cut_power(self.chance.choice(list(Mood)))
        self.stage = self.owner.stage = Stage(self.stage.disk)
        self.stage.step()
        self.stage.end_syncs()
        self.stage.answers()

    def seen(self) -> set[str]:
        found: set[str] = set()
        for index in range(PARTITIONS):
            partition = self.stage.node.host.partition(self.stage.node.catalog.topics["rain"], index, self.stage.now_ms)
            assert isinstance(partition, Partition)
            found.update(value.decode() for value in committed_values(partition.log))
        self.stage.step()
        self.stage.end_syncs()
        return found


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    by_epoch=st.booleans(),
    script=st.lists(st.sampled_from(ACTIONS), min_size=5, max_size=25),
)
def test_a_transaction_is_seen_whole_or_not_at_all(seed: int, by_epoch: bool, script: list[str]) -> None:
    """And positions with it; nothing that its owner did not commit is ever seen."""
    play = Play(seed, by_epoch=by_epoch)
    for action in script:
        play.act(action)
        allowed = set().union(*play.sure, *play.maybe)
        assert play.seen() <= allowed
        assert position(play.stage)[0] in play.positions
    play.own()
    seen = play.seen()
    assert play.stage.node.transactions.table.transactions["till"].state is State.EMPTY
    for deed in play.sure:
        assert deed <= seen
    for deed in play.maybe:
        assert deed <= seen or not deed & seen
    assert seen <= set().union(*play.sure, *play.maybe)

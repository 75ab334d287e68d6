"""What may be done about a topic that exists and is not as the plan wants it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.plan.topic_differences import Action, Existing, Made, compare
from penstock.plan.topics import Wanted

DAY = str(86_400_000)
WEEK = str(7 * 86_400_000)
WANTED = Wanted("purchases", 2, 1, {"retention.ms": WEEK, "flush.messages": "1"})
THERE = Existing("id-1", 2, 1, {"retention.ms": WEEK, "flush.messages": "1"})
OURS = Made(topic="purchases", topic_id="id-1", app="shop", settings={"retention.ms": WEEK, "flush.messages": "1"})


def with_setting(name: str, value: str) -> Existing:
    return replace(THERE, settings={**THERE.settings, name: value})


def actions(there: Existing, made: Made | None, *, adopt: bool = False) -> dict[str, Action]:
    return {found.setting: found.action for found in compare("shop", WANTED, there, made, adopt=adopt)}


@pytest.mark.parametrize("made", [None, OURS])
def test_an_equal_topic_has_no_difference(made: Made | None) -> None:
    assert actions(THERE, made) == {}


def test_a_weaker_setting_of_another_topic_is_refused_and_adopt_sets_it() -> None:
    there = with_setting("retention.ms", DAY)
    assert actions(there, None) == {"retention.ms": Action.REFUSE}
    assert actions(there, None, adopt=True) == {"retention.ms": Action.SET}
    (found,) = compare("shop", WANTED, there, None)
    assert "Penstock did not make the topic. Pass --adopt purchases" in found.sentence


@pytest.mark.parametrize("kept", ["-1", str(90 * 86_400_000)])
def test_longer_retention_of_another_topic_is_kept_also_when_adopted(kept: str) -> None:
    there = with_setting("retention.ms", kept)
    assert actions(there, None) == {"retention.ms": Action.KEEP}
    assert actions(there, None, adopt=True) == {"retention.ms": Action.KEEP}
    adopted = Made(topic="purchases", topic_id="id-1", app="shop", settings={}, adopted=True)
    assert actions(there, adopted) == {"retention.ms": Action.KEEP}


def test_retention_that_penstock_set_follows_the_app_and_says_so() -> None:
    before = replace(THERE, settings={**THERE.settings, "retention.ms": "-1"})
    made = Made(topic="purchases", topic_id="id-1", app="shop", settings={"retention.ms": "-1"})
    (found,) = compare("shop", WANTED, before, made)
    assert found.action is Action.SET
    assert "the queue deletes the records beyond it" in found.sentence


def test_retention_that_an_operator_lengthened_is_kept() -> None:
    assert actions(with_setting("retention.ms", "-1"), OURS) == {"retention.ms": Action.KEEP}


@pytest.mark.parametrize(
    "made",
    [
        Made(topic="purchases", topic_id="id-0", app="shop", settings={}),
        Made(topic="purchases", topic_id="id-1", app="desk", settings={}),
    ],
    ids=["an earlier topic of the name", "another app"],
)
def test_a_topic_that_another_made_is_not_changed(made: Made) -> None:
    assert actions(with_setting("flush.messages", "9"), made) == {"flush.messages": Action.REFUSE}


def test_another_number_of_partitions_is_refused_for_every_topic() -> None:
    assert actions(replace(THERE, partitions=3), OURS, adopt=True) == {"partitions": Action.REFUSE}


def test_fewer_copies_are_refused_where_an_outage_is_catastrophic_and_said_elsewhere() -> None:
    settings = WANTED.settings | {"min.insync.replicas": "2"}
    wanted = replace(WANTED, replicas=3, settings=settings)
    there = with_setting("min.insync.replicas", "1")
    assert {d.setting: d.action for d in compare("shop", wanted, there, OURS)} == {"replication.factor": Action.KEEP}
    needed = replace(wanted, needs_copies=True)
    found = {d.setting: d.action for d in compare("shop", needed, there, None)}
    assert found == {"replication.factor": Action.REFUSE, "min.insync.replicas": Action.REFUSE}


@pytest.mark.parametrize(("made", "action"), [(None, Action.KEEP), (OURS, Action.SET)])
def test_copies_that_acknowledge_are_changed_only_in_own_topics(made: Made | None, action: Action) -> None:
    wanted = replace(WANTED, replicas=3, settings=WANTED.settings | {"min.insync.replicas": "2"})
    there = replace(with_setting("min.insync.replicas", "1"), replicas=3)
    assert {d.setting: d.action for d in compare("shop", wanted, there, made)} == {"min.insync.replicas": action}

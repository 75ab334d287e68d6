"""A topic of the same name with another id is another topic."""

from __future__ import annotations

from pathlib import Path

from penstock.client.topic_identity import checkpoint_error, identity_errors

FILES = (Path("checkpoints/keep"), Path("checkpoints/keep.json"))
MADE = {"clicks": "id-1", "kept": "id-2"}


def test_the_topics_that_the_app_made_are_fine() -> None:
    assert identity_errors(MADE, {**MADE, "other": "id-9"}) == {}
    assert checkpoint_error(MADE, MADE, FILES) is None


def test_a_deleted_topic_and_one_made_again_are_named_with_the_way_out() -> None:
    errors = identity_errors(MADE, {"kept": "id-3"})
    assert errors["clicks"].startswith("the topic clicks was deleted while the app runs: start the app again")
    assert errors["kept"].endswith("or start the app with --adopt kept")


def test_a_checkpoint_is_refused_only_if_its_topic_was_made_again() -> None:
    error = checkpoint_error({"clicks": "id-1"}, {"clicks": "id-2"}, FILES)
    assert error is not None
    assert error.startswith("the topic clicks was deleted and made again")
    assert checkpoint_error({}, {"clicks": "id-2"}, FILES) is None, "a checkpoint of an earlier version knows no ids"
    assert checkpoint_error({"clicks": "id-1"}, {}, FILES) is None, "a topic that is away is waited for"

"""The page about guarantees says what the code decides."""

from __future__ import annotations

import re
from itertools import product

from penstock.guarantee import Guarantee
from penstock.plan.policies import policy_of
from tools.guarantee_table import ABOUT, ANSWERS, PAGE, QUEUES, page


def test_the_tables_are_those_of_the_code() -> None:
    """Run python tools/guarantee_table.py after a change."""
    text = PAGE.read_text("utf-8")
    assert page(text) == text


def test_the_answers_and_their_defaults_are_those_of_the_code() -> None:
    """Every answer that the first table shows is one, in every combination but those that the page names."""
    rows = re.findall(r"^\| \*\*(\w+)\*\*:.* \| (.*) \| `(.*)` \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert Guarantee(**{question: default for question, _, default in rows}) == Guarantee()
    questions = [question for question, _, _ in rows]
    assert len(questions) == 4
    for answers in product(*(re.findall("`(.*?)`", shown) for _, shown, _ in rows)):
        said = dict(zip(questions, answers, strict=True))
        refused = "at-most-once" if said["loss"] == "none" else "exactly-once"
        assert bool(Guarantee(**said).faults()) == (said["delivery"] == refused), said


def test_each_value_of_the_policies_is_in_a_table() -> None:
    shown = {name for names in ABOUT.values() for name in names}
    for queue, guarantees in product(QUEUES.values(), ANSWERS.values()):
        for guarantee in guarantees:
            missing = {row.name for row in policy_of(guarantee, queue).rows(queue.kind)} - shown
            assert missing == set()

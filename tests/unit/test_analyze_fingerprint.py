"""Which changes of a query go on with its checkpoint."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from penstock.analyze.fingerprint.comparison import Changed, Compatible, Fingerprint, compare
from penstock.analyze.fingerprint.function_source import function_digest, text_digest, used_digest
from penstock.analyze.kept import NEW, Kept, decode_kept, encode_kept
from penstock.process import app_loader

TOTALS = Fingerprint(
    text="1",
    topics=("moves",),
    spark="4.3.0",
    state=("Aggregate [card], [card, sum(n)]", "  topic moves"),
    columns={"moves.card": "STRING", "moves.n": "INT"},
)
PLAIN = Fingerprint(text="1", topics=("moves",), spark="4.3.0")


def reasons(kept: Fingerprint, now: Fingerprint) -> tuple[str, ...]:
    found = compare(kept, now)
    assert isinstance(found, Changed)
    return found.reasons


def remark(kept: Fingerprint | None, now: Fingerprint) -> str | None:
    found = compare(kept, now)
    assert isinstance(found, Compatible)
    return found.remark


def test_the_same_query_goes_on_without_a_word() -> None:
    assert remark(TOTALS, replace(TOTALS)) is None


def test_a_checkpoint_of_an_earlier_version_goes_on() -> None:
    assert "has no fingerprint" in str(remark(None, TOTALS))


def test_what_is_above_the_state_may_change() -> None:
    assert remark(TOTALS, replace(TOTALS, text="2")) == (
        "the query changed: its state is made as before, and it goes on with it"
    )


def test_a_stateless_query_may_change() -> None:
    assert "keeps no state" in str(remark(PLAIN, replace(PLAIN, text="2", spark="4.4.0")))


def test_another_topic_is_refused_also_without_state() -> None:
    """Spark's checkpoint has positions by the number of the source, not by its name."""
    assert reasons(PLAIN, replace(PLAIN, topics=("moves", "fees"), text="2")) == (
        "it reads moves, fees, and its positions are of moves",
    )


def test_another_state_is_refused_with_the_operator_that_differs() -> None:
    changed = replace(TOTALS, text="2", state=("Aggregate [card], [card, max(n)]", "  topic moves"))
    assert reasons(TOTALS, changed) == (
        "its state was made by Aggregate [card], [card, sum(n)], and now by Aggregate [card], [card, max(n)]",
    )
    more = replace(TOTALS, text="2", state=(*TOTALS.state, "  topic fees"))
    assert reasons(TOTALS, more) == ("its state was made by nothing, and now by topic fees",)
    assert reasons(TOTALS, replace(PLAIN, text="2"))[0].startswith("it kept state, and keeps none now")
    assert reasons(PLAIN, replace(TOTALS, text="2"))[0].startswith("it keeps state now")


def test_another_type_of_a_column_is_named() -> None:
    changed = replace(TOTALS, columns={"moves.card": "STRING", "moves.n": "BIGINT"})
    assert reasons(TOTALS, changed) == ("column moves.n was INT and is BIGINT",)


def test_a_column_more_in_the_state_of_a_join_is_refused() -> None:
    changed = replace(TOTALS, text="2", columns={**TOTALS.columns, "moves.note": "STRING"})
    assert reasons(TOTALS, changed) == ("its state keeps moves.note",)


def test_python_code_below_the_state_counts() -> None:
    assert reasons(TOTALS, replace(TOTALS, text="2", code="x")) == ("Python code that makes its state was changed",)


def test_another_spark_says_the_plan_of_the_same_query_in_other_words() -> None:
    other = replace(TOTALS, spark="4.4.0", state=("Aggregate {card}", "  topic moves"))
    assert "Spark 4.3.0 to 4.4.0" in str(remark(TOTALS, other))
    assert "cannot be compared" in reasons(TOTALS, replace(other, text="2"))[0]


def test_a_fingerprint_is_kept_and_read_again() -> None:
    kept = Kept(mode="realtime", topics={"moves": "1"}, fingerprint=TOTALS, obeyed={"file": "7"})
    assert decode_kept(encode_kept(kept)) == kept
    assert decode_kept(b'{"mode": "realtime", "reason": null}') == Kept(mode="realtime")
    assert decode_kept(b"\xff") == NEW


# Code of an app.


class Code:
    """Modules of an app in a folder; `module` writes one and imports it anew."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: list[str] = []

    def module(self, name: str, text: str) -> Any:
        path = self.folder / f"{name}.py"
        path.write_text(text)
        found = ModuleType(name)
        found.__file__ = str(path)
        sys.modules[name] = found
        self.names.append(name)
        import linecache

        linecache.clearcache()
        exec(compile(text, str(path), "exec"), vars(found))  # as an import does, without its cache
        return found


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Code]:
    monkeypatch.setattr(app_loader, "folders", [str(tmp_path)])
    monkeypatch.setattr("penstock.analyze.fingerprint.function_source.folders", [str(tmp_path)])
    made = Code(tmp_path)
    yield made
    for name in made.names:
        sys.modules.pop(name, None)


QUERY = """
import ops_beside
LIMIT = {limit}
def rate(x):
    {comment}
    return x * LIMIT + ops_beside.bonus(x)
def decorated(**options): return lambda function: function
@decorated({options})
def totals(frame):
    return rate(frame), {above}
"""
BESIDE = "def bonus(x):\n    return x + {}\n"
SAME = {"limit": "3", "comment": "# a comment", "options": "", "above": "1"}


def digests(code: Code, bonus: int = 1, **changed: str) -> tuple[str, str]:
    code.module("ops_beside", BESIDE.format(bonus))
    app = code.module("ops_app", QUERY.format_map(SAME | changed))
    return function_digest(app.totals), used_digest(app.totals, {"rate"})


def test_a_comment_and_the_options_of_a_query_are_no_change(code: Code) -> None:
    before = digests(code)
    assert digests(code) == before
    assert digests(code, comment="# another", options="every='1 minute'") == before


def test_a_change_above_the_state_is_no_change_of_its_code(code: Code) -> None:
    before, after = digests(code), digests(code, above="2")
    assert before[0] != after[0]
    assert before[1] == after[1]


@pytest.mark.parametrize("changed", [{"limit": "4"}, {"comment": "x += 1"}])
def test_a_constant_and_a_called_function_count(code: Code, changed: dict[str, str]) -> None:
    before, after = digests(code), digests(code, **changed)
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_a_module_beside_the_app_counts(code: Code) -> None:
    before, after = digests(code), digests(code, bonus=2)
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_a_function_that_is_not_found_by_name_stands_for_all(code: Code) -> None:
    digests(code)
    app = sys.modules["ops_app"]
    assert used_digest(app.totals, {"hidden"}) == function_digest(app.totals)
    assert used_digest(app.totals, set()) == ""


def test_partials_and_wrapped_functions_are_followed(code: Code) -> None:
    digests(code)
    rate = sys.modules["ops_app"].rate
    assert function_digest(functools.partial(rate)) == function_digest(rate)


def test_white_space_of_sql_does_not_count() -> None:
    assert text_digest("SELECT  a\n FROM b") == text_digest("SELECT a FROM b")

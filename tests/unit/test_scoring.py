"""score_sql: the structure of an expression, the limits of float32, and the models that it refuses."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from penstock import scoring
from penstock.errors import ConfigError
from penstock.scoring import score_sql

X = [[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [3.0, 6.0]]
TWO = ["good", "good", "fraud", "fraud"]
# Half of them lie beside a number of float32, where rounding decides.
FLOATS = st.one_of(st.floats(width=32, allow_nan=False), st.floats(allow_nan=False))


def beside(value: float) -> Iterator[float]:
    yield from (value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf))


@settings(deadline=None)
@given(threshold=FLOATS, value=FLOATS)
def test_a_limit_decides_as_float32_does(threshold: float, value: float) -> None:
    limit, is_open = scoring._limit(threshold)
    with np.errstate(all="ignore"):
        rounded = float(np.float32(threshold))
    for one in [value, *beside(threshold), *beside(limit), *beside(rounded)]:
        if abs(one) < scoring._FLOAT32_END:  # scikit-learn refuses all others
            with np.errstate(all="ignore"):
                expected = float(np.float32(one)) <= threshold
            assert (one < limit if is_open else one <= limit) == expected, (one, limit, is_open)


def test_the_expression_of_a_tree_is_one_case() -> None:
    tree = DecisionTreeRegressor().fit(X[:3], [1.0, 1.0, 4.0])
    guard = " AND ".join(
        f"(CAST({name} AS DOUBLE) IS NULL OR isnan(CAST({name} AS DOUBLE)) OR abs(CAST({name} AS DOUBLE)) < "
        "3.4028235677973366e+38D)"
        for name in ("amount", "p.age")
    )
    # The threshold is 1.5. The middle to the next float32 rounds to 1.5, which is even. Missing values go left.
    split = "CASE WHEN nanvl(CAST(amount AS DOUBLE), NULL) > 1.5000000596046448D THEN 4.0D ELSE 1.0D END"
    assert score_sql(tree, ["amount", "p.age"]) == f"CASE WHEN {guard} THEN {split} END"


def test_a_split_that_does_not_matter_is_left_out() -> None:
    pure = DecisionTreeClassifier(max_depth=1, random_state=0).fit(X, ["a", "b", "a", "b"])
    tree = scoring._tree(pure.tree_, 0)
    assert tree.splits == 1
    same = SimpleNamespace(
        children_left=np.array([1, -1, -1]),
        children_right=np.array([2, -1, -1]),
        feature=np.array([0, -2, -2]),
        threshold=np.array([1.5, -2.0, -2.0]),
        missing_go_to_left=np.array([0, 0, 0]),
        value=np.array([[[0.5]], [[0.5]], [[0.5]]]),
    )
    assert scoring._tree(same, 0) == scoring._Leaf(0.5)


def test_columns_come_from_the_names_that_the_model_was_fitted_with() -> None:
    pandas = pytest.importorskip("pandas")
    tree = DecisionTreeClassifier().fit(pandas.DataFrame(X, columns=["amount", "card age"]), TWO)
    assert score_sql(tree) == score_sql(tree, ["amount", "`card age`"])
    with pytest.raises(ConfigError, match="another order than the features of the model: amount, age"):
        score_sql(DecisionTreeClassifier().fit(pandas.DataFrame(X, columns=["amount", "age"]), TWO), ["age", "amount"])


def test_the_label_chooses_the_class() -> None:
    tree = DecisionTreeClassifier(random_state=0).fit(X, TWO)
    assert score_sql(tree, ["a", "b"]) == score_sql(tree, ["a", "b"], label="good")
    assert score_sql(tree, ["a", "b"]) != score_sql(tree, ["a", "b"], label="fraud")


def fitted(model: Any, y: Any = TWO) -> Any:
    return model.fit(X, y)


REFUSED = [
    (
        LogisticRegression(),
        "is no tree model known here. Call it in a pandas function. Known: DecisionTreeClassifier, ",
    ),
    (IsolationForest(), "is no tree model known here"),
    (HistGradientBoostingClassifier(), "Fit a GradientBoosting model"),
    (make_pipeline(StandardScaler(), DecisionTreeClassifier()), "Give its last step"),
    (
        GradientBoostingClassifier(init=LogisticRegression()),
        "the model starts from init=LogisticRegression: leave init out",
    ),
]


@pytest.mark.parametrize(("model", "reason"), REFUSED, ids=lambda one: type(one).__name__)
def test_a_model_without_an_expression_is_refused(model: Any, reason: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(reason)):
        score_sql(fitted(model), ["a", "b"])


def test_what_is_not_a_model_of_scikit_learn_is_refused() -> None:
    class RandomForestClassifier:
        """Of another library."""

    with pytest.raises(ConfigError, match="is no tree model known here"):
        score_sql(RandomForestClassifier(), ["a"])


def test_arguments_that_do_not_fit_are_refused() -> None:
    tree, three = fitted(DecisionTreeClassifier()), fitted(DecisionTreeClassifier(), ["a", "b", "c", "c"])
    for reason, arguments in {
        "not fitted": (DecisionTreeClassifier(), ["a", "b"], None),
        "without names of features: give columns": (tree, None, None),
        "has 2 features, and columns has 1": (tree, ["a"], None),
        "has 2 features, and columns has": (tree, "ab", None),
        "'a + 1' is no name of a column": (tree, ["a + 1", "b"], None),
        "label='c' is no class of the model. Its classes: 'fraud', 'good'": (tree, ["a", "b"], "c"),
        "label=None is no class of the model. Its classes: 'a', 'b', 'c'": (three, ["a", "b"], None),
        "a regressor has no classes": (fitted(DecisionTreeRegressor(), [1, 2, 3, 4]), ["a", "b"], 1),
        "has 2 outputs": (fitted(DecisionTreeRegressor(), [[1, 2]] * 4), ["a", "b"], None),
    }.items():
        model, columns, label = arguments
        with pytest.raises(ConfigError, match=re.escape(reason)):
            score_sql(model, columns, label=label)


def test_a_model_that_is_too_large_is_refused_with_the_way_out() -> None:
    random = np.random.default_rng(1)
    rows, noise = random.normal(size=(3000, 3)), random.normal(size=3000)
    large = RandomForestRegressor(n_estimators=5, random_state=1).fit(rows, noise)
    with pytest.raises(
        ConfigError, match=r"splits, up to \d+ deep. At most .*: fit the model with fewer trees or leaves"
    ):
        score_sql(large, ["a", "b", "c"])


def test_a_model_that_predicts_in_another_way_is_refused() -> None:
    """As a later version of scikit-learn might."""
    forest = fitted(RandomForestClassifier(n_estimators=3, random_state=0))
    expected = forest.predict_proba
    forest.predict_proba = lambda rows: expected(rows) * 0.5
    with pytest.raises(ConfigError, match="predicts in a way that is not known here"):
        score_sql(forest, ["a", "b"])


def test_a_model_without_missing_values_gives_null_for_them() -> None:
    boosted = fitted(GradientBoostingClassifier(n_estimators=2))
    sql = score_sql(boosted, ["a", "b"])
    first, second = (f"abs(CAST({name} AS DOUBLE)) < 3.4028235677973366e+38D" for name in "ab")
    assert sql.startswith(f"CASE WHEN {first} AND {second} THEN 1D / (1D + exp(-(aggregate(array(CASE WHEN ")
    assert "IS NULL" not in sql

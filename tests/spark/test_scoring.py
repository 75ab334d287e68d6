"""score_sql: Spark gives what the model predicts, at each limit of its splits too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from penstock.scoring import score_sql
from penstock.testing import end_shared_spark, shared_spark

FEATURES = ["a", "b", "c", "d"]
ROWS = 2000
SEED = 20
LARGEST = float(np.finfo(np.float32).max)
REFUSED = [float("inf"), float("-inf"), 3.4028235677973366e38, 1e300]
# What is odd about a double: signs of zero, the least ones, the ends of float32, what only just rounds down to them.
ODD = [0.0, -0.0, 5e-324, 1e-45, -1e-45, LARGEST, -LARGEST, float(np.nextafter(3.4028235677973366e38, 0)), 2.0**24 + 1]


@pytest.fixture(scope="module", autouse=True)
def _own_spark() -> Iterator[None]:
    yield
    end_shared_spark()


def data(missing: bool) -> Any:
    """Features with many ties at one decimal, and with values that are not of float32."""
    random = np.random.default_rng(SEED)
    rows = random.normal(size=(600, len(FEATURES)))
    rows[:, 1] = rows[:, 1].round(1)
    rows[:, 2] *= 1e6
    if missing:
        rows[random.random(rows.shape) < 0.1] = np.nan
    return rows


def target(kind: str) -> Any:
    rows = data(missing=False)
    if kind == "two":
        return np.where(rows[:, 0] + rows[:, 1] > 0, "fraud", "good")
    if kind == "three":
        return (rows[:, 0] > 0).astype(int) + (rows[:, 1] > 0.3)
    return rows[:, 0] * 3 + rows[:, 1] * rows[:, 3]


def limits(model: Any) -> Iterator[tuple[int, float]]:
    """Each threshold with its feature, the doubles about it, and those that round to float32 on its two sides."""
    estimators = np.ravel(model.estimators_) if hasattr(model, "estimators_") else [model]
    for tree in (one.tree_ for one in estimators):
        for feature, threshold in zip(tree.feature.tolist(), tree.threshold.tolist(), strict=True):
            if feature < 0 or abs(threshold) > LARGEST:
                continue
            nearest = np.float32(threshold)
            sides = [float(np.nextafter(nearest, np.float32(end))) for end in (np.inf, -np.inf)]
            for value in (threshold, float(nearest), *((side + float(nearest)) / 2 for side in sides)):
                yield from ((feature, value), (feature, float(np.nextafter(value, np.inf))))
                yield feature, float(np.nextafter(value, -np.inf))


def rows_for(model: Any, missing: bool) -> Any:
    random = np.random.default_rng(SEED)
    values: list[list[float]] = [list(ODD) for _ in FEATURES]
    for feature, value in limits(model):
        values[feature].append(value)
    rows = np.array([random.choice(column, ROWS) for column in values]).T
    ordinary = random.random(rows.shape) < 0.3
    rows[ordinary] = random.normal(size=rows.shape)[ordinary]
    if missing:
        rows[random.random(rows.shape) < 0.1] = np.nan
    return rows


def scored(sql: str, rows: list[list[float | None]]) -> list[float | None]:
    spark = shared_spark()
    frame = spark.createDataFrame(
        [(*row, at) for at, row in enumerate(rows)], "a DOUBLE, b DOUBLE, c DOUBLE, d DOUBLE, at INT"
    )
    got = {row["at"]: row["score"] for row in frame.selectExpr("at", f"{sql} AS score").collect()}
    return [got[at] for at in range(len(rows))]


SMALL = {"n_estimators": 5, "max_depth": 5, "random_state": SEED}
CASES: dict[str, tuple[Any, str, bool]] = {
    "tree": (DecisionTreeClassifier(max_depth=6, random_state=SEED), "two", True),
    "tree-of-three": (DecisionTreeClassifier(random_state=SEED), "three", False),
    "tree-regressor": (DecisionTreeRegressor(max_depth=6), "number", True),
    "forest": (RandomForestClassifier(**SMALL), "two", True),
    "forest-of-three": (RandomForestClassifier(**SMALL), "three", True),
    "forest-regressor": (RandomForestRegressor(**SMALL), "number", True),
    "extra": (ExtraTreesClassifier(**SMALL), "two", True),
    "extra-regressor": (ExtraTreesRegressor(**SMALL), "number", True),
    "boosted": (GradientBoostingClassifier(**SMALL), "two", False),
    "boosted-exponential": (GradientBoostingClassifier(**SMALL, loss="exponential"), "two", False),
    "boosted-of-three": (GradientBoostingClassifier(**SMALL, init="zero"), "three", False),
    "boosted-of-three-prior": (GradientBoostingClassifier(**SMALL), "three", False),
    "boosted-regressor": (GradientBoostingRegressor(**SMALL, loss="huber"), "number", False),
}


@pytest.mark.parametrize("case", CASES)
def test_spark_gives_what_the_model_predicts(case: str) -> None:
    model, kind, missing = CASES[case]
    model.fit(data(missing), target(kind))
    rows = rows_for(model, missing)
    label = {"two": "fraud", "three": 1, "number": None}[kind]
    with np.errstate(all="ignore"):  # scikit-learn adds the values up to see whether one is infinite
        if kind == "number":
            expected = model.predict(rows)
        else:
            expected = model.predict_proba(rows)[:, list(model.classes_).index(label)]
    # NULL and NaN take turns as what is missing.
    given = [[None if value != value and at % 2 else value for value in row] for at, row in enumerate(rows.tolist())]
    got = np.array(scored(score_sql(model, FEATURES, label=label), given), dtype=float)
    if "boosted" in case and kind != "number":
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=0)  # the exponential of Java and of numpy
    else:
        np.testing.assert_array_equal(got, expected)
    assert len(set(got.tolist())) > 1


@pytest.mark.parametrize("case", ["forest", "boosted"])
def test_a_row_that_the_model_refuses_gives_null(case: str) -> None:
    model, kind, missing = CASES[case]
    model.fit(data(missing), target(kind))
    refused = REFUSED if missing else [*REFUSED, float("nan")]
    for value in refused:
        with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"contains (infinity|NaN)"):
            model.predict([[value, 0.0, 0.0, 0.0]])
    rows: list[list[float | None]] = [[0.0, value, 0.0, 0.0] for value in refused]
    if not missing:
        rows.append([None, 0.0, 0.0, 0.0])
    assert scored(score_sql(model, FEATURES), rows) == [None] * len(rows)
    assert scored(score_sql(model, FEATURES), [[0.0] * 4]) != [None]

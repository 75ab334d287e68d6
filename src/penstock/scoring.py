"""Compiles a fitted scikit-learn tree model to one expression of Spark SQL. Pure: it imports no library."""

from __future__ import annotations

import math
import re
import struct
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import ConfigError

SPLITS_MAX = 5_000  # measured: docs/adr/0020-tree-models-as-sql.md
DEPTH_MAX = 32
FEATURES_MAX = 500

# A double of this size or above rounds to infinity in float32. scikit-learn refuses such a value.
_FLOAT32_END = 3.4028235677973366e38
_FLOAT32_MAX = 3.4028234663852886e38
_EXP_MAX = 700.0  # the exponential of more than 709 is infinite
_SAMPLES = 64
_COLUMN = re.compile(r"(\w+|`[^`]+`)(\.(\w+|`[^`]+`))*")
_FORESTS = ("RandomForest", "ExtraTrees")
_SINGLE = ("DecisionTree", "ExtraTree")
_BOOSTED = ("GradientBoosting",)
_KINDS = tuple(f"{name}{task}" for name in (*_SINGLE, *_FORESTS, *_BOOSTED) for task in ("Classifier", "Regressor"))


def score_sql(model: Any, columns: Sequence[str] | None = None, *, label: Any = None) -> str:
    """The SQL expression, a DOUBLE, that equals the prediction of a fitted scikit-learn tree model.

    For a regressor it is `predict`, for a classifier the column of `predict_proba` of the class `label`. Without
    `label` that is the second of two classes; of more classes it must be named.

    `columns` names the column of each feature, in the order of the features, as SQL writes it. Without it they are
    the names that the model was fitted with. An expression is computed in a subquery, and named there.

    NULL and NaN are missing values, and go where the model sends them. The expression is NULL where the model
    refuses the row: a value beyond float32, and a missing value if the model takes none.

    ConfigError says why a model has no expression, and the way out.
    """
    task = _task(model)
    names = _columns(model, columns)
    sums = _sums(model, task, _class_index(model, task, label))
    splits = sum(one.splits for one in sums.trees())
    depth = max((one.depth for one in sums.trees()), default=0)
    if splits > SPLITS_MAX or depth > DEPTH_MAX:
        raise ConfigError(
            f"the expression has {splits:,} splits, up to {depth} deep. At most {SPLITS_MAX:,}, {DEPTH_MAX} deep, run: "
            "fit the model with fewer trees or leaves (n_estimators, max_leaf_nodes, max_depth), or call it in a "
            "pandas function"
        )
    takes_missing = _takes(model, [math.nan] * len(names))
    _compare(model, task, label, sums, len(names), takes_missing)
    inputs = [f"CAST({name} AS DOUBLE)" for name in names]
    finite = [f"abs({one}) < {_number(_FLOAT32_END)}" for one in inputs]
    if takes_missing:
        finite = [f"({one} IS NULL OR isnan({one}) OR {test})" for one, test in zip(inputs, finite, strict=True)]
    return f"CASE WHEN {' AND '.join(finite)} THEN {sums.sql(inputs)} END"


@dataclass(frozen=True, slots=True)
class _Leaf:
    value: float
    splits: int = 0
    depth: int = 0

    def sql(self, inputs: Sequence[str]) -> str:
        return _number(self.value)

    def score(self, row: Sequence[float]) -> float:
        return self.value

    def values(self) -> Iterator[float]:
        yield self.value


@dataclass(frozen=True, slots=True)
class _Split:
    """Goes left where the value, a double, is at most the limit, or below it if `open`."""

    feature: int
    limit: float
    open: bool
    is_missing_left: bool
    left: _Node
    right: _Node
    splits: int
    depth: int

    def sql(self, inputs: Sequence[str]) -> str:
        # NaN is above each number, and NULL fulfils no condition: ELSE gets both.
        one, limit = inputs[self.feature], _number(self.limit)
        left, right = self.left.sql(inputs), self.right.sql(inputs)
        if self.is_missing_left:
            return f"CASE WHEN nanvl({one}, NULL) {'>=' if self.open else '>'} {limit} THEN {right} ELSE {left} END"
        return f"CASE WHEN {one} {'<' if self.open else '<='} {limit} THEN {left} ELSE {right} END"

    def score(self, row: Sequence[float]) -> float:
        value = row[self.feature]
        is_left = value < self.limit if self.open else value <= self.limit
        if math.isnan(value):
            is_left = self.is_missing_left
        return (self.left if is_left else self.right).score(row)

    def values(self) -> Iterator[float]:
        yield from self.left.values()
        yield from self.right.values()


_Node = _Leaf | _Split


@dataclass(frozen=True, slots=True)
class _Sum:
    """A start and the trees, added in the order of the model, so that the rounding is the same."""

    start: float | None
    trees: tuple[_Node, ...]

    def sql(self, inputs: Sequence[str]) -> str:
        if self.start is None and len(self.trees) == 1:
            return self.trees[0].sql(inputs)
        # Spark interprets `aggregate` instead of compiling it: a sum of many trees is above what one method may hold.
        trees = ", ".join(tree.sql(inputs) for tree in self.trees)
        return f"aggregate(array({trees}), {_number(self.start or 0.0)}, (total, one) -> total + one)"

    def score(self, row: Sequence[float]) -> float:
        total = self.start or 0.0
        for tree in self.trees:
            total += tree.score(row)
        return total

    def bound(self) -> float:
        return abs(self.start or 0.0) + sum(max(map(abs, tree.values())) for tree in self.trees)


@dataclass(frozen=True, slots=True)
class _Sums:
    """The sums of a model, and what becomes of them: `mean`, `raw`, `logistic`, `doubled` (logistic), `share`."""

    sums: tuple[_Sum, ...]
    link: str
    chosen: int = 0
    is_complement: bool = False

    def trees(self) -> Iterator[_Node]:
        """The trees of the expression: for a share, those of the chosen class stand there twice."""
        for one in (*self.sums, self.sums[self.chosen]) if self.link == "share" else self.sums:
            yield from one.trees

    def sql(self, inputs: Sequence[str]) -> str:
        chosen = self.sums[self.chosen]
        raw = chosen.sql(inputs)
        if self.link == "mean":
            return raw if len(chosen.trees) == 1 else f"{raw} / {_number(len(chosen.trees))}"
        if self.link == "raw":
            return raw
        if self.link == "share":
            return f"exp({raw}) / ({' + '.join(f'exp({one.sql(inputs)})' for one in self.sums)})"
        power = f"{'2D * ' if self.link == 'doubled' else ''}{raw}"
        return f"1D / (1D + exp({power if self.is_complement else f'-({power})'}))"

    def score(self, row: Sequence[float]) -> float:
        raw = self.sums[self.chosen].score(row)
        if self.link == "mean":
            return raw / len(self.sums[self.chosen].trees)
        if self.link == "raw":
            return raw
        if self.link == "share":
            return math.exp(raw) / sum(math.exp(one.score(row)) for one in self.sums)
        power = 2 * raw if self.link == "doubled" else raw
        return 1 / (1 + math.exp(power if self.is_complement else -power))


def _task(model: Any) -> str:
    """What the model is: `Classifier` or `Regressor`; ConfigError if this module does not know it."""
    name = type(model).__name__
    if not type(model).__module__.startswith("sklearn.") or name not in _KINDS:
        way_out = "Call it in a pandas function"
        if name == "Pipeline":
            way_out = "Give its last step, and compute in a subquery what its other steps do"
        elif name.startswith("HistGradientBoosting"):
            way_out = "Fit a GradientBoosting model: scikit-learn publishes its trees"
        raise ConfigError(
            f"{type(model).__module__}.{name} is no tree model known here. {way_out}. Known: {', '.join(_KINDS)}"
        )
    if not hasattr(model, "n_features_in_"):
        raise ConfigError(f"the {name} is not fitted: call fit first")
    if getattr(model, "n_outputs_", 1) != 1:
        raise ConfigError(f"the {name} has {model.n_outputs_} outputs: fit a model for each")
    return "Classifier" if name.endswith("Classifier") else "Regressor"


def _columns(model: Any, columns: Sequence[str] | None) -> list[str]:
    fitted = [str(name) for name in getattr(model, "feature_names_in_", ())]
    if columns is None and not fitted:
        raise ConfigError("the model was fitted without names of features: give columns, in the order of its features")
    names = (
        list(columns)
        if columns is not None
        else [name if _COLUMN.fullmatch(name) else _quoted(name) for name in fitted]
    )
    if isinstance(columns, str) or len(names) != model.n_features_in_:
        raise ConfigError(f"the model has {model.n_features_in_} features, and columns has {len(names)}")
    if len(names) > FEATURES_MAX:
        raise ConfigError(
            f"the model has {len(names)} features: at most {FEATURES_MAX} run as SQL. Select the important ones"
        )
    odd = [name for name in names if not _COLUMN.fullmatch(name)]
    if odd:
        raise ConfigError(f"{odd[0]!r} is no name of a column: quote it with backticks, or compute it in a subquery")
    if columns is not None and sorted(names) == sorted(fitted) and names != fitted:
        raise ConfigError(f"columns has another order than the features of the model: {', '.join(fitted)}")
    return names


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _class_index(model: Any, task: str, label: Any) -> int:
    if task == "Regressor":
        if label is not None:
            raise ConfigError("a regressor has no classes: leave label out")
        return 0
    classes = list(model.classes_)
    if label is None and len(classes) == 2:
        return 1
    if label is None or label not in classes:
        known = ", ".join(repr(getattr(one, "item", lambda one=one: one)()) for one in classes)
        raise ConfigError(f"label={label!r} is no class of the model. Its classes: {known}")
    return classes.index(label)


def _sums(model: Any, task: str, chosen: int) -> _Sums:
    name = type(model).__name__.removesuffix(task)
    is_class = task == "Classifier"
    if name in _SINGLE:
        return _Sums((_Sum(None, (_tree(model.tree_, chosen),)),), "mean")
    if name in _FORESTS:
        return _Sums((_Sum(None, tuple(_tree(one.tree_, chosen) for one in model.estimators_)),), "mean")
    rate = float(model.learning_rate)
    starts = _starts(model, is_class)
    columns = range(len(starts))
    sums = tuple(_Sum(starts[k], tuple(_tree(stage[k].tree_, 0, rate) for stage in model.estimators_)) for k in columns)
    if not is_class:
        return _Sums(sums, "raw")
    if max(one.bound() for one in sums) > _EXP_MAX / 2:
        raise ConfigError(
            "the raw predictions of the model are too large for an exponential: lower learning_rate or n_estimators"
        )
    if len(sums) > 1:
        return _Sums(sums, "share", chosen)
    return _Sums(sums, "doubled" if model.loss == "exponential" else "logistic", 0, is_complement=chosen == 0)


def _starts(model: Any, is_class: bool) -> list[float]:
    """What a boosted model adds its trees to, from `init_`."""
    trees = model.estimators_.shape[1]
    init = model.init_
    if isinstance(init, str) and init == "zero":
        return [0.0] * trees
    name = type(init).__name__
    if name == "DummyRegressor" and not is_class:
        return [float(init.constant_.ravel()[0])]
    if name != "DummyClassifier" or init.strategy != "prior" or not is_class:
        raise ConfigError(f"the model starts from init={name}: leave init out, or say init='zero'")
    tiny = 2.0**-52
    shares = [min(max(float(one), tiny), 1 - tiny) for one in init.class_prior_]
    if trees > 1:
        # The link centers the logarithms: the shares of the classes are the same, the rounding is not.
        mean = math.exp(sum(map(math.log, shares)) / len(shares))
        return [math.log(one / mean) for one in shares]
    logit = math.log(shares[1] / (1 - shares[1]))
    return [logit / 2 if model.loss == "exponential" else logit]


def _tree(tree: Any, output: int, factor: float | None = None) -> _Node:
    """A tree of scikit-learn, without splits that do not matter."""
    lefts, rights = tree.children_left.tolist(), tree.children_right.tolist()
    features, thresholds = tree.feature.tolist(), tree.threshold.tolist()
    missing, values = tree.missing_go_to_left.tolist(), tree.value[:, 0, output].tolist()
    nodes: dict[int, _Node] = {}
    for at in range(len(lefts) - 1, -1, -1):  # a child has a larger number than its parent
        if lefts[at] == -1:
            nodes[at] = _Leaf(values[at] if factor is None else factor * values[at])
            continue
        left, right = nodes.pop(lefts[at]), nodes.pop(rights[at])
        if left == right and isinstance(left, _Leaf):
            nodes[at] = left
            continue
        limit, is_open = _limit(thresholds[at])
        depth = 1 + max(left.depth, right.depth)
        splits = 1 + left.splits + right.splits
        nodes[at] = _Split(features[at], limit, is_open, bool(missing[at]), left, right, splits, depth)
    return nodes[0]


def _limit(threshold: float) -> tuple[float, bool]:
    """The limit of the doubles whose float32 is at most the threshold, and whether the limit itself is out.

    scikit-learn rounds a value to float32, half to even, and compares that with the threshold, a double.
    """
    if threshold >= _FLOAT32_END:
        return _FLOAT32_END, True
    if threshold < -_FLOAT32_MAX:
        return -_FLOAT32_END, False
    below = _float32_at_most(threshold)
    middle = (below + _next_float32(below)) / 2  # exact: a double has 29 more bits
    return middle, middle >= _FLOAT32_END or _float32(middle) != below


def _float32_at_most(value: float) -> float:
    nearest = _float32(value)
    return nearest if nearest <= value else -_next_float32(-nearest)


def _float32(value: float) -> float:
    nearest: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return nearest


def _next_float32(value: float) -> float:
    """The next float32 above a float32; 2**128 above the largest."""
    if value == 0:
        return 2.0**-149
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    bits += 1 if bits >= 0 else -1
    if bits == 0x7F800000:
        return 2.0**128
    following: float = struct.unpack("<f", struct.pack("<i", bits))[0]
    return following


def _number(value: float) -> str:
    """A literal DOUBLE that reads as exactly this value."""
    return f"{float(value)!r}D"


def _takes(model: Any, row: list[float]) -> bool:
    """Whether the model accepts the row."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it was fitted with names, and the row has none
            model.predict([row])
    except ValueError:
        return False
    return True


def _compare(model: Any, task: str, label: Any, sums: _Sums, features: int, takes_missing: bool) -> None:
    """Refuse a model of a version that predicts in another way."""
    rows = list(_samples(sums, features, takes_missing))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if task == "Classifier":
            expected = model.predict_proba(rows)[:, _class_index(model, task, label)].tolist()
        else:
            expected = model.predict(rows).tolist()
    for row, one in zip(rows, expected, strict=True):
        if not math.isclose(sums.score(row), one, rel_tol=1e-9, abs_tol=1e-9):
            raise ConfigError(
                f"this version of scikit-learn predicts in a way that is not known here: {one!r} instead of "
                f"{sums.score(row)!r} for {row}. Call the model in a pandas function"
            )


def _samples(sums: _Sums, features: int, takes_missing: bool) -> Iterator[list[float]]:
    """Rows at and beside the limits of the first splits, in an order that is always the same."""
    limits: list[list[float]] = [[0.0] for _ in range(features)]
    waiting: list[_Node] = list(sums.trees())[:_SAMPLES]
    for node in waiting:
        if isinstance(node, _Split) and len(waiting) < 4 * _SAMPLES:
            limits[node.feature] += [
                node.limit,
                math.nextafter(node.limit, math.inf),
                math.nextafter(node.limit, -math.inf),
            ]
            waiting += [node.left, node.right]
    if takes_missing:
        for values in limits:
            values.append(math.nan)
    limits = [[value for value in values if not abs(value) >= _FLOAT32_END] for values in limits]
    for n in range(_SAMPLES):
        yield [values[(n * (2 * k + 1) + k) % len(values)] for k, values in enumerate(limits)]

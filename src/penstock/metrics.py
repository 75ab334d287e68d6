"""Prometheus text: every metric of every tier is rendered here, with its labels escaped. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Sample = tuple[Mapping[str, str], float]


def family(name: str, kind: Literal["gauge", "counter"], help: str, samples: Iterable[Sample]) -> Iterator[str]:
    """Lines of a family; those of one without samples say that it exists."""
    yield from _head(name, kind, help)
    for labels, value in samples:
        yield _line(name, labels, value)


def single(name: str, kind: Literal["gauge", "counter"], help: str, value: float) -> Iterator[str]:
    """Lines of a metric without labels."""
    return family(name, kind, help, [({}, value)])


def histogram(name: str, help: str, buckets: Iterable[tuple[float | None, int]], total: float) -> Iterator[str]:
    """Lines of a histogram: how many are in each bucket, by its upper bound, and the sum of all. None: no bound."""
    yield from _head(name, "histogram", help)
    count = 0
    for bound, more in buckets:
        count += more
        yield _line(f"{name}_bucket", {"le": "+Inf" if bound is None else f"{bound:g}"}, count)
    yield _line(f"{name}_sum", {}, total)
    yield _line(f"{name}_count", {}, count)


def _head(name: str, kind: str, help: str) -> Iterator[str]:
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    inner = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items())
    number = f"{value}" if isinstance(value, int) else f"{value:.6f}"
    return f"{name}{{{inner}}} {number}" if inner else f"{name} {number}"

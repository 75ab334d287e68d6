"""Prometheus text: one family of metrics, with its labels escaped. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Sample = tuple[Mapping[str, str], float]


def family(name: str, kind: Literal["gauge", "counter"], help: str, samples: Iterable[Sample]) -> Iterator[str]:
    """Lines of a family; those of one without samples say that it exists."""
    yield f"# HELP {name} {help}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        inner = ",".join(f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items())
        number = f"{value}" if isinstance(value, int) else f"{value:.6f}"
        yield f"{name}{{{inner}}} {number}" if inner else f"{name} {number}"

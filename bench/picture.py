"""Draws the ratios of a report: one dot a row, a mark for its goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_REACHED, _MISSED, _STATED = "#1b7f5c", "#c2452d", "#5b6b7a"


def draw(measured: Sequence[Mapping[str, Any]], picture: Path) -> None:
    """Ratios ours/peer on a log axis; right of 1 is better for rates, left of 1 for times and memory."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rates = [row for row in measured if row["ratio"] and row["more_is_better"]]
    costs = [row for row in measured if row["ratio"] and not row["more_is_better"]]
    panels = [(rows, title) for rows, title in ((rates, _RATES), (costs, _COSTS)) if rows]
    if not panels:
        return
    heights = [len(rows) for rows, _ in panels]
    figure, axes = pyplot.subplots(
        len(panels), 1, figsize=(10, 1.6 + 0.34 * sum(heights)), height_ratios=heights, squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for axis, (rows, title) in zip(axes[:, 0], panels, strict=True):
        _draw_panel(axis, rows, title)
    axes[-1, 0].set_xlabel("ours / peer, same machine, same run (log scale)")
    figure.savefig(picture, dpi=130)
    pyplot.close(figure)


_RATES = "Rates: right of 1 is faster than the peer"
_COSTS = "Times, memory, processor: left of 1 is less than the peer"


def _draw_panel(axis: Any, rows: list[Any], title: str) -> None:
    places = range(len(rows))
    axis.set_title(title, loc="left", fontsize=11)
    axis.set_xscale("log")
    axis.axvline(1.0, color="#222222", linewidth=1)
    for place, row in zip(places, rows, strict=True):
        colour = {True: _REACHED, False: _MISSED, None: _STATED}[row["reached"]]
        axis.plot([1.0, row["ratio"]], [place, place], color=colour, linewidth=3, alpha=0.35, solid_capstyle="round")
        axis.plot(row["ratio"], place, "o", color=colour, markersize=7)
        if row["goal"] and not row["judged_alone"]:
            axis.plot(row["goal"], place, "|", color="#222222", markersize=14, markeredgewidth=2)
        axis.annotate(
            f"{row['ratio']:.2f}", (1.005, place), xycoords=("axes fraction", "data"), va="center", fontsize=9,
            color=colour,
        )  # fmt: skip
    axis.set_yticks(list(places), [row["name"] for row in rows], fontsize=9)
    axis.set_ylim(len(rows) - 0.4, -0.6)
    goals = [row["goal"] for row in rows if row["goal"] and not row["judged_alone"]]
    low = min(1.0, *goals, *(row["ratio"] for row in rows))
    high = max(1.0, *goals, *(row["ratio"] for row in rows))
    axis.set_xlim(low / 1.4, high * 1.4)
    ticks = [tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if low / 1.4 <= tick <= high * 1.4]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.grid(axis="x", color="#dddddd", linewidth=0.8)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.tick_params(axis="y", length=0)

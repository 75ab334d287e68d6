"""A picture of a storm: who did what when, what went wrong, and how far behind the groups were."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from penstock.assure.history import Begin, Decide, Ended, Outcome, Poll, Position, Settle
from penstock.assure.verdict import Verdict
from proof.storm.fault_injector import Done
from proof.storm.recording import Stamped

# Finer moments cannot be told apart in the picture.
MOMENT_S = 0.2
# The names of more deeds would cover each other.
NAMED_MAX = 60
GREEN, RED, ORANGE, BLUE, GREY, INK = "#1b7f5c", "#c2452d", "#d98b1f", "#3b6fb5", "#9aa5b1", "#22303c"
LANE_OF = {
    "kill-broker": "broker", "pause-broker": "broker", "fill-disk": "disk", "slow-syncs": "disk",
    "failing-sync": "disk", "cut": "network", "cut-some": "network", "shut-gate": "network", "delay": "network",
    "swallow": "network", "hold-end": "network", "kill-proxy": "network", "pause-proxy": "network",
}  # fmt: skip


class Sketch:
    """What the picture shows, from one pass over the history."""

    def __init__(self, history: Iterable[Stamped], verdict: Verdict, names: Sequence[str]) -> None:
        wanted = {number for finding in verdict.findings for number in finding.events}
        self.begin = self.end = 0.0
        self.acks: dict[str, set[float]] = {name: set() for name in names}
        self.polls: dict[str, set[float]] = {name: set() for name in names}
        self.transactions: list[tuple[str, float, float, str]] = []
        self.lags: dict[str, list[tuple[float, int]]] = {}
        self.faults: list[float] = []
        self._open: dict[str, tuple[float, bool]] = {}
        self._ends: dict[tuple[str, int], int] = {}
        self._positions: dict[tuple[str, str, int], int] = {}
        for number, (at, event) in enumerate(history, start=1):
            self.begin = self.begin or at
            self.end = at
            if number in wanted:
                self.faults.append(at)
            self._take(at, event)
        for transaction, (at, _) in self._open.items():
            self.transactions.append((_name(transaction), at, at, GREY))

    def _take(self, at: float, event: Any) -> None:
        moment, name = round(at / MOMENT_S) * MOMENT_S, event.process.partition(".")[0]
        match event:
            case Settle(outcome=Outcome.OK) if name in self.acks:
                self.acks[name].add(moment)
                key = (event.topic, event.partition)
                self._ends[key] = max(self._ends.get(key, 0), (event.offset or 0) + 1)
            case Poll() if name in self.polls:
                self.polls[name].add(moment)
            case Begin():
                self._open[event.transaction] = (at, False)
            case Decide() if event.transaction in self._open:
                self._open[event.transaction] = (self._open[event.transaction][0], event.commit)
            case Ended() if event.transaction in self._open:
                begun, commit = self._open.pop(event.transaction)
                self.transactions.append((name, begun, at, GREEN if commit else ORANGE))
            case Position():
                self._positions[event.group, event.topic, event.partition] = event.offset or 0
                behind = sum(
                    max(0, self._ends.get((topic, partition), 0) - position)
                    for (group, topic, partition), position in self._positions.items()
                    if group == event.group
                )
                self.lags.setdefault(event.group, []).append((at, behind))


def _name(transaction: str) -> str:
    return transaction.partition(".")[0]


def draw(sketch: Sketch, done: Sequence[Done], verdict: Verdict, title: str, picture: Path) -> None:
    """One lane for each client, lanes for broker, network and disk above them, the lag of groups below."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    lanes = ["disk", "network", "broker", *sketch.acks]
    sizes = [0.26 * len(lanes), 1.9]
    figure, (upper, lower) = pyplot.subplots(
        2, 1, figsize=(15, 1.6 + sum(sizes)), height_ratios=sizes, sharex=True, layout="constrained"
    )
    rows = {name: len(lanes) - number for number, name in enumerate(lanes)}
    _draw_clients(upper, sketch, rows)
    _draw_deeds(upper, done, rows, sketch.begin)
    for at in sketch.faults:
        for axis in (upper, lower):
            axis.axvline(at - sketch.begin, color=RED, linewidth=1.2, alpha=0.6)
    upper.set_yticks(list(rows.values()), list(rows))
    upper.set_ylim(0.3, len(lanes) + 0.7)
    upper.set_title(f"{title}: {verdict.result}", loc="left", color=INK)
    upper.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    for group, lag in sketch.lags.items():
        lower.plot([at - sketch.begin for at, _ in lag], [behind for _, behind in lag], label=group, linewidth=1)
    lower.set_ylabel("records behind")
    lower.set_xlabel("seconds")
    if sketch.lags:
        lower.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=8)
    for axis in (upper, lower):
        axis.spines[["top", "right"]].set_visible(False)
        axis.set_xlim(0, sketch.end - sketch.begin)
    figure.savefig(picture, dpi=110)
    pyplot.close(figure)


def _draw_clients(axis: Any, sketch: Sketch, rows: dict[str, int]) -> None:
    for moments, color, height, label in (
        (sketch.acks, BLUE, -0.16, "acknowledged"),
        (sketch.polls, GREY, -0.16, "polled"),
    ):
        for number, (name, times) in enumerate(moments.items()):
            at = [time - sketch.begin for time in sorted(times)]
            y = [rows[name] + height] * len(at)
            axis.plot(at, y, "|", color=color, markersize=3, label=None if number else label)
    labels = {GREEN: "committed", ORANGE: "aborted", GREY: "end unknown or never asked"}
    for name, begun, ended, color in sketch.transactions:
        if name in rows:
            x = (begun - sketch.begin, ended - sketch.begin + 0.05)
            axis.plot(x, [rows[name] + 0.12] * 2, color=color, linewidth=4, label=labels.pop(color, None))


def _draw_deeds(axis: Any, done: Sequence[Done], rows: dict[str, int], begin: float) -> None:
    marks = {"kill-broker": "x", "kill-proxy": "x", "kill-client": "x", "leave": "v", "cut": "x", "cut-some": "x"}
    labels = {"x": "killed, cut", "v": "left", "_": "paused, frozen, delayed, filled, …"}
    for at, until, kind, target in done:
        lane = LANE_OF.get(kind, target)
        y = rows[lane]
        mark = marks.get(kind, "_")
        if lane != target and len(done) <= NAMED_MAX:
            axis.annotate(kind, (at - begin, y), (0, 3), textcoords="offset points", fontsize=5, color=INK)
        if mark == "_":
            x = (at - begin, max(until, at + 0.2) - begin)
            axis.plot(x, [y - 0.32] * 2, color=RED, linewidth=3, alpha=0.7, label=labels.pop(mark, None))
        else:
            axis.plot([at - begin], [y], mark, color=RED, markersize=6, label=labels.pop(mark, None))

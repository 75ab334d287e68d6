"""Runs trials in turns: ours, the peer, ours, the peer, so that what the machine does meanwhile hits both."""

from __future__ import annotations

from collections.abc import Sequence

from bench.produce import ProduceTrial, produce
from bench.requests import RequestsTrial
from bench.row import Row, Trial
from bench.scene import KAFKA, NO_FSYNC, OURS, Scene, say
from bench.start import StartTrial
from bench.stolen import stolen_percent, ticks_now

Values = dict[Trial, list[dict[str, float]]]

_ON_WARM_BROKERS = ("ProduceTrial", "ConsumeTrial", "RequestsTrial", "LatencyTrial", "MemoryTrial", "RebalanceTrial")
_BEHIND_QUERIES = ("PipelineTrial", "CatchUpTrial", "FirstResultTrial", "BacklogTrial", "IdleTrial")
_ONCE = ("PartitionsTrial", "PipelineTrial", "CatchUpTrial", "WaitTrial", "BacklogTrial", "IdleTrial")  # minutes each


def run_rows(scene: Scene, rows: Sequence[Row], ours_only: bool = False) -> Values:
    """What every trial of these rows measured, round by round; rows of one kind share their rounds."""
    values: Values = {}
    groups: dict[str, dict[Trial, None]] = {}
    for row in rows:
        group = groups.setdefault(_group(row.ours), {})
        for trial in (row.ours, row.kafka):
            if trial is not None and (trial.side == OURS or not ours_only):
                group[trial] = None
    _warm_kafka(scene, [trial for group in groups.values() for trial in group])
    for group in groups.values():
        _run_group(scene, sorted_in_turns(list(group)), values)
    scene.stop_brokers()
    return values


def sorted_in_turns(trials: Sequence[Trial]) -> list[Trial]:
    """Ours and the peer's one after the other, as long as there are both."""
    ours = [trial for trial in trials if trial.side == OURS]
    others = [trial for trial in trials if trial.side != OURS]
    turns = []
    for number in range(max(len(ours), len(others))):
        turns += ours[number : number + 1] + others[number : number + 1]
    return turns


def _group(trial: Trial) -> str:
    part = getattr(trial, "record_bytes", getattr(trial, "query", ""))
    return f"{type(trial).__name__}{part}"


def _run_group(scene: Scene, trials: Sequence[Trial], values: Values) -> None:
    shared = all(type(trial).__name__ in _ON_WARM_BROKERS for trial in trials)
    once = all(type(trial).__name__ in _ONCE for trial in trials)
    warm_rounds = scene.pace.warm_rounds if shared or isinstance(trials[0], StartTrial) else 0
    rounds = 1 if once else scene.pace.rounds
    for number in range(-warm_rounds, rounds):
        for trial in trials:
            before = ticks_now()
            result = trial.run(scene)
            stolen = stolen_percent(before, ticks_now())
            numbers = ", ".join(f"{name} {value:,.4g}" for name, value in result.items())
            label = "warm-up" if number < 0 else f"round {number + 1}/{rounds}"
            say(f"  {label}: {trial} {numbers}; the host kept back {stolen:.1f} % of the processors")
            if number >= 0:
                values.setdefault(trial, []).append(result)


def _warm_kafka(scene: Scene, trials: Sequence[Trial]) -> None:
    """Let Java compile what the trials will run: millions of records, and single requests if they are measured."""
    warm = _ON_WARM_BROKERS + _BEHIND_QUERIES
    kafka = [trial for trial in trials if trial.side == KAFKA and type(trial).__name__ in warm]
    if not kafka:
        return
    records = scene.pace.kafka_warm_records
    say(f"warming Kafka with {records:,} records")
    with scene.topic(KAFKA, NO_FSYNC) as (address, topic):
        produce(address, topic, 100, records)
    if any(not isinstance(trial, ProduceTrial) for trial in kafka):
        seconds = scene.pace.kafka_warm_requests_s
        say(f"warming Kafka with single requests for {seconds:.0f} s")
        RequestsTrial(KAFKA, 20, NO_FSYNC).run_for(scene, 0.0, seconds)

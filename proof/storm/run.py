"""One storm from its beginning to its verdict."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from penstock.assure.checker import check
from penstock.assure.verdict import Result, Verdict
from penstock.drills.proxy_process import ProxyProcess
from penstock.drills.recording_clients import Place, create_topic
from proof.storm.activity_check import ActivityCheck
from proof.storm.client import CLASSIC, COPYING, NEWER
from proof.storm.client_processes import FULL, Cast, Part
from proof.storm.fault_injector import Director, Done
from proof.storm.fault_schedule import FIRST, Weather
from proof.storm.final_checks import settle
from proof.storm.fragile_disk import FragileDisk
from proof.storm.offset_auditor import Auditor
from proof.storm.recording import StampedRecorder, join_histories
from proof.storm.roles import COPIES, COPIES_PARTITIONS, QUICK, RECORDS, RECORDS_PARTITIONS, RECORDS_PLACES
from proof.storm.target_broker import KafkaStage, PenstockStage, Stage

DISK_BYTES = 2 * 1024**3
# Small segments, so that rolls and checkpoints happen under fire too.
SETTINGS = {"segment.bytes": str(1024 * 1024)}


class Outcome(NamedTuple):
    """What a storm came to."""

    verdict: Verdict
    done: list[Done]
    lives: int
    gave_up: dict[str, int]
    slowest_start_s: float
    swallowed: int
    held_back: int
    troubles: list[str]

    @property
    def is_good(self) -> bool:
        return self.verdict.result is Result.VALID and not self.troubles


def run_storm(
    folder: Path,
    seed: int,
    seconds: float,
    tell: Callable[[str], None],
    *,
    kafka: bool = False,
    disk: bool = True,
    plant: str | None = None,
    parts: Sequence[Part] = FULL,
    deeds_min: int = len(FIRST),
) -> Outcome:
    """Storm for so long, and on until so many deeds are done; then calm, then the verdict. `plant`: a bug to put in."""
    histories = folder / "history"
    histories.mkdir()
    outcome: Outcome | None = None
    with ExitStack() as stack:
        mounted = stack.enter_context(FragileDisk(folder, DISK_BYTES)) if disk and not kafka and can_mount() else None
        data = folder if mounted is None else mounted.root

        def keep() -> None:
            """The disk goes with this storm, but not what may tell why it did not end well."""
            is_good = outcome is not None and outcome.is_good
            if mounted is not None and not is_good and (data / "data").exists():
                shutil.copytree(data / "data", folder / "data")

        stack.callback(keep)
        proxy = stack.enter_context(ProxyProcess(folder))
        gate, address = proxy.port, f"127.0.0.1:{proxy.port}"
        stage: Stage = KafkaStage(data, gate) if kafka else PenstockStage(data / "data", folder, gate, plant)
        stack.callback(stage.kill)
        stage.start()
        proxy.target_port = stage.port
        proxy.start()
        _create_topics(address, {} if kafka else {"penstock.durability": "memory"})
        cast = Cast(parts, address, histories, seed)
        stack.callback(cast.kill)
        recorder = StampedRecorder(histories / "stage.jsonl")
        stack.callback(recorder.close)
        auditor = Auditor(address, recorder, groups_of(parts))
        syncs = disk and isinstance(stage, PenstockStage) and stage.can_break_syncs
        weather = Weather(seed, list(cast.players), disk=mounted is not None, syncs=syncs)
        director = Director(stage, proxy, cast, weather, None if mounted is None else mounted.root)
        cast.tend()
        auditor.start()
        stack.callback(auditor.stop)
        witness = ActivityCheck(director.play(seconds, tell, deeds_min), parts)
        tell("calm: everything settles, then all is read from the beginning")
        director.calm()
        troubles = settle(cast, address, auditor, recorder, tell)
        troubles += stage.finish()
        troubles += [trouble for player in cast.players.values() for trouble in player.troubles]
        verdict = check(witness.watch(join_histories(histories_in(folder))))
        verdict = witness.judge(verdict, len(director.done))
        gave_up = {player.part.name: player.gave_up for player in cast.players.values() if player.gave_up}
        numbers = (director.slowest_start_s, proxy.swallowed, proxy.held_back)
        outcome = Outcome(verdict, director.done, director.lives, gave_up, *numbers, troubles)
    return outcome


def _create_topics(address: str, quick: dict[str, str]) -> None:
    create_topic(address, RECORDS, RECORDS_PARTITIONS, SETTINGS)
    create_topic(address, COPIES, COPIES_PARTITIONS, SETTINGS)
    create_topic(address, QUICK, 1, {**SETTINGS, **quick})


def histories_in(folder: Path) -> list[Path]:
    """What each process of a storm recorded."""
    return sorted((folder / "history").glob("*.jsonl"))


def groups_of(parts: Sequence[Part]) -> dict[str, list[Place]]:
    """The groups that these parts make up, and what each reads."""
    groups: dict[str, list[Place]] = {}
    for part in parts:
        match part.role.split("-"):
            case ["classic"]:
                groups[CLASSIC] = RECORDS_PLACES
            case ["newer"]:
                groups[NEWER] = RECORDS_PLACES
            case ["copier"]:
                groups[COPYING] = RECORDS_PLACES
            case ["copier", partition]:
                groups[f"{COPYING}-{partition}"] = [RECORDS_PLACES[int(partition)]]
    return groups


def can_mount() -> bool:
    """Whether this machine lets us have a disk of our own."""
    tools = all(shutil.which(tool) for tool in ("mkfs.ext4", "mount", "umount"))
    return tools and os.geteuid() == 0 and Path("/dev/loop-control").exists()

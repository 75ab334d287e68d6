"""The storm: every process of the app is killed while purchases come; then all is judged.

python -m examples.fraud.storm --minutes 5 --seed 7
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from examples.fraud.oracle import decisions
from penstock.demo.purchases import purchases
from penstock.drills.app_process import SUPERVISOR, AppProcess, OrphansError
from penstock.drills.recording_clients import read_topic
from penstock.errors import PenstockError

APP = "penstock.demo.app"
PAUSE_S = (3.0, 10.0)
TARGETS = {"broker": 3, "edge": 3, "jvm": 2, "analyze": 2, SUPERVISOR: 2}
SETTLE_S = 240.0
SENDERS = 4
RATE = 60.0


class Outcome(NamedTuple):
    """What a storm came to."""

    kills: dict[str, int]
    accepted: int
    stored: int
    decided: int
    repeats: int
    faults: list[str]


class Senders:
    """Terminals that send purchases, and again when they hear no answer."""

    def __init__(self, address: str, seed: int) -> None:
        self.accepted: set[str] = set()
        self.refused: list[str] = []
        self._address = address
        self._stream = purchases(seed, datetime.now(UTC), RATE)
        self._turn = threading.Lock()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._send, daemon=True) for _ in range(SENDERS)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """No new purchases; those begun are sent until they are accepted."""
        self._stop.set()
        for thread in self._threads:
            thread.join(SETTLE_S)

    def _send(self) -> None:
        with closing(HTTPConnection(self._address, timeout=10)) as connection:
            while not self._stop.wait(SENDERS / RATE):
                with self._turn:
                    purchase = next(self._stream)
                body = json.dumps(purchase)
                while not self._post(connection, purchase["id"], body):
                    time.sleep(0.2)

    def _post(self, connection: HTTPConnection, id: str, body: str) -> bool:
        try:
            connection.request("POST", "/ingest/purchases", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            said = answer.read()
        except (OSError, HTTPException):
            connection.close()
            return False
        if answer.status == 202:
            self.accepted.add(id)
            return True
        if answer.status in (429, 503):
            return False
        self.refused.append(f"{answer.status} {said!r}")
        return True


def run_storm(folder: Path, seed: int, seconds: float, tell: Callable[[str], None]) -> Outcome:
    """Kill at random for `seconds`, let everything settle, and compare each decision with the oracle's."""
    chance = random.Random(seed)
    kills = dict.fromkeys(TARGETS, 0)
    with AppProcess(APP, folder) as app:
        tell(f"up at {app.url}")
        senders = Senders(f"127.0.0.1:{app.port}", seed)
        ends = time.monotonic() + seconds
        first_round = chance.sample(list(TARGETS), len(TARGETS))  # each at least once, however short the storm
        while first_round or time.monotonic() < ends:
            time.sleep(chance.uniform(*PAUSE_S))
            target = first_round[0] if first_round else chance.choices(list(TARGETS), list(TARGETS.values()))[0]
            if not app.kill_part(target):
                continue
            first_round = first_round[1:]
            kills[target] += 1
            if target == SUPERVISOR:
                app.start(ready=chance.random() < 0.5)
            tell(f"killed {target}; {len(senders.accepted)} accepted, {max(0.0, ends - time.monotonic()):.0f} s left")
        tell("calm: what was accepted must be decided")
        senders.stop()
        outcome = _judge(app, senders, kills)
        status = app.stop()
    return outcome._replace(faults=outcome.faults + ([f"the app ended with status {status}"] if status else []))


def _judge(app: AppProcess, senders: Senders, kills: dict[str, int]) -> Outcome:
    deadline = time.monotonic() + SETTLE_S
    decided: list[dict[str, Any]] = []
    while True:
        decided = list(_values(app.queue, "decisions"))
        missing = senders.accepted - {one["id"] for one in decided}
        if not missing or time.monotonic() > deadline:
            break
        time.sleep(1.0)
    stored = list(_values(app.queue, "purchases"))
    faults = [f"answered with {said}" for said in senders.refused[:5]]
    lost = senders.accepted - {one["id"] for one in stored}
    faults += [f"{len(lost)} accepted purchases are not stored, such as {sorted(lost)[0]}"] if lost else []
    faults += [f"{len(missing)} accepted purchases were not decided, such as {sorted(missing)[0]}"] if missing else []
    faults += _wrong(stored, decided)
    ids = [one["id"] for one in decided]
    return Outcome(kills, len(senders.accepted), len(stored), len(set(ids)), len(ids) - len(set(ids)), faults)


def _wrong(stored: list[dict[str, Any]], decided: list[dict[str, Any]]) -> Iterator[str]:
    expected = decisions(stored)
    wrong = [one for one in decided if not _agrees(one, expected.get(one["id"]))]
    if wrong:
        yield f"{len(wrong)} decisions are not the oracle's: {wrong[0]} instead of {expected.get(wrong[0]['id'])}"


def _agrees(one: dict[str, Any], expected: Any) -> bool:
    return expected is not None and (one["decision"], one["reason"]) == (expected.decision, expected.reason)


def _values(queue: str, topic: str) -> Iterator[dict[str, Any]]:
    return (json.loads(record.value or b"") for record in read_topic(queue, topic))


def main() -> int:
    """Run a storm and tell the verdict; exit status 3 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="examples.fraud.storm", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="penstock-fraud-storm-"))
    print(f"storm of {options.minutes:g} minutes, seed {options.seed}, in {folder}")
    try:
        outcome = run_storm(folder, options.seed, 60 * options.minutes, lambda line: print(line, flush=True))
    except OrphansError as error:
        print(f"verdict invalid: {error}")
        return 3
    except PenstockError as error:
        print(f"verdict unknown: {error}")
        return 4
    print(f"kills: {', '.join(f'{name} {count}' for name, count in outcome.kills.items())}")
    print(
        f"{outcome.accepted} purchases accepted, {outcome.stored} records stored, {outcome.decided} decided, "
        f"{outcome.repeats} decisions repeated, as at-least-once allows"
    )
    for fault in outcome.faults:
        print(f"fault: {fault}")
    if outcome.faults:
        print(f"verdict invalid; data and logs are in {folder}")
        print(f"repeat: python -m examples.fraud.storm --minutes {options.minutes:g} --seed {options.seed}")
        return 3
    print("verdict valid")
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())

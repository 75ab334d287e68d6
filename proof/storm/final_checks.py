"""The calm after the storm: everything settles, groups catch up, all is read from the beginning."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import KafkaException, Producer

from penstock.assure.history import Outcome, Send, Settle
from penstock.drills.recording_clients import PATIENT, Place, read_all
from penstock.errors import PenstockError
from proof.storm.client_processes import Cast
from proof.storm.confluent_client import ConfluentWriting
from proof.storm.offset_auditor import Auditor
from proof.storm.recording import StampedRecorder
from proof.storm.roles import COPIES_PLACES, QUICK_PLACE, RECORDS_PLACES

CATCH_UP_S = 120.0
INIT_S = 60.0


def settle(
    cast: Cast, address: str, auditor: Auditor, recorder: StampedRecorder, tell: Callable[[str], None]
) -> list[str]:
    """Bring everything to an end and record the final reads; what was still wrong."""
    cast.tend()
    cast.dismiss("writer", "owner", "administrator")
    _end_transactions(cast, address, "owner")
    targets = _close(address, recorder)
    troubles = _catch_up(cast, auditor, targets)
    cast.dismiss("classic", "newer", "copier", "follower")
    _end_transactions(cast, address, "copier")
    auditor.stop()
    for (group, place), missing in auditor.behind(targets).items():
        tell(f"{group} is {missing} records behind in {place.topic}/{place.partition}")
    places = [*RECORDS_PLACES, *COPIES_PLACES, QUICK_PLACE]
    read_all("final", address, recorder, places)
    read_all("final-committed", address, recorder, places, isolation_level="read_committed")
    return troubles


def _end_transactions(cast: Cast, address: str, role: str) -> None:
    """What the last life of an owner left open is aborted."""
    for player in cast.players.values():
        if player.part.role.partition("-")[0] == role:
            settings = {"bootstrap.servers": address, "transactional.id": player.part.name, **PATIENT}
            try:
                Producer(settings).init_transactions(INIT_S)
            except KafkaException as error:
                raise PenstockError(f"nobody may write as {player.part.name} any more: {error}") from error


def _close(address: str, recorder: StampedRecorder) -> dict[Place, int]:
    """A last record in every partition; where the groups must come to."""
    targets: dict[Place, int] = {}

    def settled(place: Place, value: str, outcome: Outcome, offset: int | None) -> None:
        recorder.record(Settle("closer", *place, value, outcome, offset))
        if outcome is Outcome.OK and offset is not None:
            targets[place] = offset + 1

    writer = ConfluentWriting(address, "closer", settled, None)
    for place in RECORDS_PLACES:
        value = f"last-{place.partition}"
        recorder.record(Send("closer", *place, value, "closer"))
        writer.send(place, value)
    writer.flush(60)
    if len(targets) < len(RECORDS_PLACES):
        raise PenstockError("the last records could not be written")
    return targets


def _catch_up(cast: Cast, auditor: Auditor, targets: dict[Place, int]) -> list[str]:
    """As long as the groups come nearer to the end."""
    least, deadline = None, time.monotonic() + CATCH_UP_S
    while late := auditor.behind(targets):
        missing = sum(late.values())
        if least is None or missing < least:
            least, deadline = missing, time.monotonic() + CATCH_UP_S
        if time.monotonic() > deadline:
            return [f"{CATCH_UP_S:.0f} s of calm brought group {group} no further" for group, _ in late]
        cast.tend()
        cast.wake()  # who was told to stand still just before the calm does so now
        time.sleep(0.2)
    return []

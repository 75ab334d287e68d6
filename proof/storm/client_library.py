"""What a client of any kind can do in the storm: one face for three libraries."""

from __future__ import annotations

import importlib
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

from penstock.assure.history import Outcome
from penstock.drills.recording_clients import Place
from penstock.errors import PenstockError

KINDS = ("confluent", "kafka_python", "aio")
# Kafka's shortest session, so that work moves while a client stands still.
SESSION_MS = 6_000
HEARTBEAT_MS = 1_000
TRANSACTION_MS = 10_000
# Longer than any outage of the storm: a client that gives up on a record begins a new epoch, and sends again under it
# what was in flight beside that record, which may stand already. No broker can know it for a repeat.
DELIVERY_MS = 300_000
BACKOFF_MS = 50

OnSettle = Callable[[Place, str, Outcome, int | None], None]
OnPlaces = Callable[[Sequence[Place]], None]
Records = list[tuple[int, str]]


class Writing(Protocol):
    """A producer; with a transactional id its transactions are initialised at once."""

    def send(self, place: Place, value: str) -> None: ...

    def turn(self, seconds: float) -> None:
        """Let answers come in."""

    def flush(self, seconds: float) -> None:
        """Wait until all is settled; PenstockError if it is not in time."""

    def begin(self) -> None: ...

    def send_positions(self, positions: Mapping[Place, int], reader: Reading) -> None:
        """Commit positions of the reader's group with the transaction."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...


class Reading(Protocol):
    """A consumer, of a group or by itself."""

    group: str

    def subscribe(self, topics: Sequence[str], on_given: OnPlaces, on_taken: OnPlaces) -> None: ...

    def assign(self, positions: Mapping[Place, int]) -> None: ...

    def poll(self, seconds: float) -> dict[Place, Records]: ...

    def commit(self, positions: Mapping[Place, int]) -> None: ...

    def position_of_group(self, place: Place) -> int | None: ...

    def close(self) -> None: ...


class Face(Protocol):
    """One client library."""

    def write(self, address: str, name: str, on_settle: OnSettle, owner: str | None = None) -> Writing: ...

    def read(self, address: str, name: str, group: str, *, committed: bool = False, newer: bool = False) -> Reading: ...


_MODULES = {"confluent": "confluent_client", "kafka_python": "kafka_python_client", "aio": "aiokafka_client"}


def face_of(kind: str) -> Face:
    """The face of a kind of client; PenstockError if its library is not here."""
    try:
        module: Any = importlib.import_module(f"proof.storm.{_MODULES[kind]}")
    except ModuleNotFoundError as missing:
        raise PenstockError(f"the storm needs the development dependencies: {missing}") from missing
    face: Face = module
    return face


@contextmanager
def within(seconds: float, what: str) -> Iterator[None]:
    """PenstockError in the main thread if it takes longer: some calls of clients have no limit of their own."""

    def ring(_: int, __: FrameType | None) -> None:
        raise PenstockError(f"{what} took more than {seconds:g} s")

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)

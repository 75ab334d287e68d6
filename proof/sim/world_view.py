"""What the checks see of a world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.queue.node import Node
from proof.sim.client_context import Scene
from proof.sim.clients.producer import Producer
from proof.sim.clients.transactor import Transactor
from proof.sim.disk import FakeDisk
from proof.sim.disk_image import Imager
from proof.sim.network import Link
from proof.sim.profile import Profile
from proof.sim.promises import Ledger
from proof.sim.read_jobs import Loader


class WorldView(Protocol):
    """The state of a simulated world; `World` is one."""

    node: Node | None
    steps: int
    before_ms: int
    answering: int
    remembered: dict[object, Any]

    @property
    def now_ms(self) -> int: ...

    @property
    def disk(self) -> FakeDisk: ...

    @property
    def imager(self) -> Imager: ...

    @property
    def ledger(self) -> Ledger: ...

    @property
    def loader(self) -> Loader: ...

    @property
    def links(self) -> Mapping[int, Link]: ...

    @property
    def producers(self) -> Sequence[Producer]: ...

    @property
    def profile(self) -> Profile: ...

    @property
    def scene(self) -> Scene: ...

    @property
    def sync_failed_ms(self) -> dict[str, int]: ...

    @property
    def transactors(self) -> Sequence[Transactor]: ...

    @property
    def unopened(self) -> dict[str, None]: ...

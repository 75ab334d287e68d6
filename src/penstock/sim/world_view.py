"""What the checks see of a world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.broker.node import Node
from penstock.sim.disk import FakeDisk
from penstock.sim.image import Imager
from penstock.sim.ledger import Ledger
from penstock.sim.loading import Loader
from penstock.sim.network import Link
from penstock.sim.producer import Producer
from penstock.sim.profile import Profile
from penstock.sim.scene import Scene
from penstock.sim.transactor import Transactor


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

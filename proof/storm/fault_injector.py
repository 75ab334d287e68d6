"""Does to broker, proxy, clients and disk what the weather says, keeps the cast going, and calms everything again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from penstock.drills.proxy_process import ProxyProcess
from penstock.errors import PenstockError
from penstock.kafka.wire.apis import ApiKey
from proof.storm.client_processes import Cast, Player
from proof.storm.fault_schedule import Deed, Span, Weather
from proof.storm.target_broker import PenstockStage, Stage

TICK_S = 0.05
BLOCK_BYTES = 4096
PLAY_ON_S = 240.0  # a machine with ten times more to do than it can


class Done(NamedTuple):
    """A deed as it was done."""

    at: float
    until: float
    kind: str
    target: str


class _Unheard(Exception):
    """Whom this deed is for is not there at the moment."""


class Director:
    """Each deed is done, noted in `done`, and undone when its time is over; one that nobody heard is tried again."""

    def __init__(self, stage: Stage, proxy: ProxyProcess, cast: Cast, weather: Weather, disk: Path | None) -> None:
        self._stage = stage
        self._proxy = proxy
        self._cast = cast
        self._weather = weather
        self._ballast = None if disk is None else disk / "ballast"
        self._later: list[tuple[float, Callable[[], object]]] = []
        self._may_end = False
        self.done: list[Done] = []
        self.slowest_start_s = 0.0

    def play(self, seconds: float, tell: Callable[[str], None], deeds_min: int = 0) -> Span:
        """Deeds for so long, and on until so many are done; what then still lasts is ended by `calm`."""
        began = told = time.monotonic()
        ends = began + seconds
        deed = self._weather.next()
        at = time.monotonic() + deed.wait_s
        while (now := time.monotonic()) < ends + (PLAY_ON_S if len(self.done) < deeds_min else 0):
            self._tick(now)
            if now >= at and self._do(deed):
                deed = self._weather.next()
                at = time.monotonic() + deed.wait_s
            if now - told > 10:
                told = now
                tell(f"{len(self.done)} deeds, {self.lives} lives of clients, {max(ends - now, 0):.0f} s left")
            time.sleep(TICK_S)
        return Span(began, now)

    @property
    def lives(self) -> int:
        return sum(player.lives for player in self._cast.players.values())

    def calm(self) -> None:
        """End everything that goes wrong at the moment; who is down is started."""
        later, self._later = self._later, []
        for _, undo in sorted(later, key=lambda one: one[0]):
            undo()
        self._proxy.tell("calm")
        self._cast.wake()
        if not self._stage.is_running:
            self._restart()

    def _tick(self, now: float) -> None:
        due = [one for one in self._later if one[0] <= now]
        self._later = [one for one in self._later if one[0] > now]
        for _, undo in due:
            undo()
        self._cast.tend()
        if not self._stage.is_running and not self._may_end:
            raise PenstockError("the broker ended by itself")
        if self._proxy.has_failed:
            raise PenstockError(f"the proxy ended by itself: {self._proxy.said}")

    def _do(self, deed: Deed) -> bool:
        """Whether it was done."""
        now = time.monotonic()
        doing: dict[str, Callable[[Deed], Callable[[], object] | None]] = {
            "kill-broker": self._kill_broker,
            "pause-broker": self._pause_broker,
            "kill-proxy": self._kill_proxy,
            "pause-proxy": self._pause_proxy,
            "kill-client": self._kill_client,
            "freeze-client": self._freeze_client,
            "freeze-at-commit": self._freeze_at_commit,
            "leave": self._leave,
            "cut": lambda _: self._tell_proxy("cut"),
            "cut-some": lambda _: self._tell_proxy("cut", 0.4),
            "shut-gate": self._shut_gate,
            "delay": self._delay,
            "swallow": lambda deed: self._tell_proxy("swallow", int(deed.target), deed.number),
            "hold-end": lambda _: self._tell_proxy("hold", ApiKey.END_TXN, ApiKey.PRODUCE),
            "fill-disk": self._fill_disk,
            "slow-syncs": lambda deed: self._break_syncs(f"delay_enter={deed.number}"),
            "failing-sync": lambda deed: self._break_syncs(f"error=EIO:when={deed.number}"),
        }
        try:
            undo = doing[deed.kind](deed)
        except _Unheard:
            return False
        if undo is not None:
            self._later.append((now + deed.lasts_s, undo))
        target = ApiKey(int(deed.target)).name if deed.kind == "swallow" else deed.target
        lasted = deed.lasts_s if undo is not None else time.monotonic() - now
        self.done.append(Done(now, now + lasted, deed.kind, target))
        return True

    def _tell_proxy(self, command: str, *arguments: float) -> None:
        if not self._proxy.tell(command, *arguments):
            raise _Unheard

    def _signal(self, deed: Deed, number: int) -> Player:
        player = self._cast.players[deed.target]
        if not player.signal(number):
            raise _Unheard
        return player

    def _restart(self) -> None:
        began = time.monotonic()
        try:
            self._stage.start()
        except PenstockError:
            # A start whose own syncs fail is refused, as it must be.
            if not self._may_end:
                raise
        self.slowest_start_s = max(self.slowest_start_s, time.monotonic() - began)

    def _kill_broker(self, _: Deed) -> None:
        self._stage.kill()
        self._restart()

    def _pause_broker(self, _: Deed) -> Callable[[], None]:
        if not self._stage.pause():
            raise _Unheard
        return self._stage.wake

    def _kill_proxy(self, _: Deed) -> Callable[[], None]:
        if not self._proxy.is_running:
            raise _Unheard
        self._proxy.kill()

        def start() -> None:
            if not self._proxy.is_running:
                self._proxy.start()

        return start

    def _pause_proxy(self, _: Deed) -> Callable[[], None]:
        if not self._proxy.pause():
            raise _Unheard
        return self._proxy.wake

    def _kill_client(self, deed: Deed) -> None:
        player = self._signal(deed, signal.SIGKILL)
        player.back_at = time.monotonic() + deed.lasts_s

    def _freeze_client(self, deed: Deed) -> Callable[[], object]:
        player = self._signal(deed, signal.SIGSTOP)
        return lambda: player.signal(signal.SIGCONT)

    def _freeze_at_commit(self, deed: Deed) -> Callable[[], object]:
        player = self._signal(deed, signal.SIGUSR1)
        return lambda: player.signal(signal.SIGCONT)

    def _leave(self, deed: Deed) -> None:
        player = self._signal(deed, signal.SIGTERM)
        player.back_at = time.monotonic() + deed.lasts_s

    def _shut_gate(self, _: Deed) -> Callable[[], object]:
        self._tell_proxy("close_gate")
        return lambda: self._proxy.tell("open_gate")

    def _delay(self, deed: Deed) -> Callable[[], object]:
        self._tell_proxy("delay", deed.number / 1000)
        return lambda: self._proxy.tell("delay", 0)

    def _fill_disk(self, _: Deed) -> Callable[[], None]:
        if self._ballast is None:
            raise PenstockError("there is no disk to be filled")
        ballast = self._ballast
        size = os.statvfs(ballast.parent).f_blocks * os.statvfs(ballast.parent).f_frsize
        with ballast.open("ab") as file:
            while size >= BLOCK_BYTES:
                try:
                    os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), size)
                except OSError:
                    size //= 2
        return lambda: ballast.unlink(missing_ok=True)

    def _break_syncs(self, injection: str) -> Callable[[], None]:
        if not isinstance(self._stage, PenstockStage):
            raise PenstockError("only our broker's syncs can be broken")
        stage = self._stage
        stage.kill()
        stage.break_syncs(injection)
        # One whose journal cannot be synced any more ends, as it must.
        self._may_end = True
        self._restart()

        def mend() -> None:
            stage.break_syncs(None)
            stage.kill()
            self._may_end = False
            self._restart()

        return mend

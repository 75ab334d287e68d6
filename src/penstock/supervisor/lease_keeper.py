"""Renews the lease of an app in a thread of its own, and reports each outcome on the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from penstock.client.lease import RENEW_S, Lease, LeaseLostError
from penstock.errors import PenstockError

_RETRY_S = 0.5
_END_WITHIN_S = 5.0


class LeaseKeeper:
    """Holds a lease that was acquired, until `end`."""

    def __init__(
        self, lease: Lease, *, on_renewed: Callable[[], None], on_trouble: Callable[[str], None],
        on_lost: Callable[[LeaseLostError], None],
    ) -> None:  # fmt: skip
        """Each callback runs on the loop in which the keeper is made."""
        self._lease = lease
        self._loop = asyncio.get_running_loop()
        self._on_renewed = on_renewed
        self._on_trouble = on_trouble
        self._on_lost = on_lost
        self._stopping = threading.Event()
        self._ended = asyncio.Event()
        # A daemon: a call to a queue that is away must not hold the end of the process back.
        threading.Thread(target=self._run, name="lease", daemon=True).start()

    async def end(self) -> None:
        """Release the lease, if the queue still answers."""
        self._stopping.set()
        try:
            await asyncio.wait_for(self._ended.wait(), _END_WITHIN_S)
        except TimeoutError:
            return

    def _run(self) -> None:
        wait_s = 0.0
        while not self._stopping.wait(wait_s):
            wait_s = RENEW_S
            try:
                self._lease.renew()
            except LeaseLostError as lost:
                self._report(self._on_lost, lost)
                break
            except PenstockError as trouble:
                wait_s = _RETRY_S
                self._report(self._on_trouble, str(trouble))
            else:
                self._report(self._on_renewed)
        else:
            self._lease.release()
        self._report(self._ended.set)

    def _report(self, callback: Callable[..., object], *words: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback, *words)

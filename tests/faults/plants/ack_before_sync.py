"""A broker with a planted bug: it acknowledges without syncing. Only a power cut can tell."""

from __future__ import annotations

import os
import sys

from penstock.cli.main import main
from penstock.queue.core.events import Sync
from penstock.queue.server.sync_pool import SyncPool


def _lie(self: SyncPool, sync: Sync) -> None:
    return None


SyncPool._sync = _lie  # type: ignore[method-assign]
for way in ("SYNC_IN_KERNEL", "SYNC_SHARES_FLUSH"):  # the kernel does not lie
    os.environ[f"PENSTOCK_BROKER_{way}"] = "false"

sys.exit(main(["broker", *sys.argv[1:]]))

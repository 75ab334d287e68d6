"""A broker whose kernel says that a sync has failed, the n-th of those it ran by itself: N ARGUMENTS."""

from __future__ import annotations

import errno
import itertools
import sys

from penstock.cli.main import main
from penstock.queue.server.kernel_sync import KernelSyncs

_FAILS_AT = int(sys.argv[1])
_ends = itertools.count(1)
_ended = KernelSyncs.ended


def _fail_once(self: KernelSyncs, at_least: int) -> list[tuple[int, int]]:
    return [(job, errno.EIO if next(_ends) == _FAILS_AT else said) for job, said in _ended(self, at_least)]


KernelSyncs.ended = _fail_once  # type: ignore[method-assign]

sys.exit(main(["broker", *sys.argv[2:]]))

"""Every disk call of a run fails once: a clean error or a clean stop, never corruption."""

from __future__ import annotations

import errno
import os

import pytest

from proof.sim.sweep import sweep

FULL = os.environ.get("PENSTOCK_TEST") == "full"


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_whichever_disk_call_fails_nothing_promised_is_lost(code: int) -> None:
    """Break the first call, then the second, until a run survives untouched."""
    stride = 1 if FULL else 23

    broken = list(sweep(3, code, first=1 if FULL else 5, stride=stride))

    assert len(broken) * stride > 100, "the run is long enough to mean something"

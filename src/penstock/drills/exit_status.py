"""The exit status of a drill, as `penstock` says it: 3 a promise was broken, 4 not known whether it was kept."""

from __future__ import annotations

from penstock.assure.verdict import Result

FAILED = 1
STATUS = {Result.VALID: 0, Result.INVALID: 3, Result.UNKNOWN: 4}

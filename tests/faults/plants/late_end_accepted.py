"""A broker with a planted bug: whoever ends a transaction is taken for its owner. Only a late end can tell."""

from __future__ import annotations

import sys
from typing import Any

from penstock.cli.main import main
from penstock.queue.transactions import coordinator
from penstock.queue.transactions.rules import Owner

_sound: Any = coordinator.plan_end


def _plan_end(transaction: Any, owner: Owner, *rest: Any) -> Any:
    believed = owner if transaction is None else Owner(transaction.producer_id, transaction.epoch)
    return _sound(transaction, believed, *rest)


coordinator.plan_end = _plan_end

sys.exit(main(["broker", *sys.argv[1:]]))

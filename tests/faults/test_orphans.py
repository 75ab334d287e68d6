"""Who starts a broker for a drill and is killed leaves nothing behind."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.drills.broker_process import BrokerProcess

DEADLINE_S = 60.0
OWNER = """
import sys
from pathlib import Path
from threading import Thread
from penstock.drills.broker_process import BrokerProcess

broker = BrokerProcess(Path(sys.argv[1], "data"), Path(sys.argv[1]))
starter = Thread(target=broker.start)
starter.start()
starter.join()
assert broker.get("/health")[0] == 200
print(broker.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.timeout(200)
def test_a_broker_ends_with_the_drill_that_started_it_and_not_before(tmp_path: Path) -> None:
    """It outlives the thread that started it, and not the process, of which no clean-up can be asked."""
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        broker = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
        ended, _, _ = select.select([broker], [], [], DEADLINE_S)
        os.close(broker)
    assert ended
    with BrokerProcess(tmp_path / "data", tmp_path) as another:
        assert another.get("/health")[0] == 200

"""An edge that has lost a part ends with a sentence, so that the supervisor starts it again."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.edge.edge_stage import DEADLINE_S, EdgeStage

BROKEN_TAIL = """
import sys
from penstock.client import tail
from penstock.edge import __main__ as edge

def fail(*order):
    raise RuntimeError("planted")

tail.Tail._obey = fail
sys.exit(edge.main())
"""
BROKEN_SERVER = """
import socket, sys
from penstock.edge import __main__ as edge

edge.listening_socket = lambda host, port: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sys.exit(edge.main())
"""


@pytest.mark.parametrize(
    ("code", "path", "says"),
    [
        (BROKEN_TAIL, "/ingest/purchases?wait=decide", b"the reader of topics has ended"),
        (BROKEN_SERVER, "", b"the server has ended"),
    ],
    ids=["the reader of topics", "the server"],
)
def test_an_edge_ends_with_a_failing_part_and_says_which(shop: EdgeStage, code: str, path: str, says: bytes) -> None:
    """Status 1, not 0; who waits for a result is told where to ask; ready is said only by an edge that serves."""
    shop.end_edge(signal.SIGTERM)
    command = [sys.executable, "-c", code, str(shop.spec)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as edge:
        assert edge.stdout is not None
        assert edge.stderr is not None
        try:
            word = edge.stdout.readline()
            assert word.startswith(b"ready ") == bool(path)
            if path:
                assert shop.post(path, {"id": "heard by nobody"}).status == 202
            assert edge.wait(DEADLINE_S) == 1
            assert says in edge.stderr.read()
        finally:
            edge.kill()

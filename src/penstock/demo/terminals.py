"""Terminals that send purchases to a running desk."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from penstock.demo.purchases import purchases

TERMINALS = 4


def start_terminals(url: str, seed: int, rate: float) -> None:
    """Send `rate` purchases a second to the desk at `url` for as long as this process lives; none at 0."""
    if rate <= 0:
        return
    stream = purchases(seed, datetime.now(UTC), rate, lambda: datetime.now(UTC))
    turn = threading.Lock()
    for number in range(TERMINALS):
        threading.Thread(target=_send, args=(url, stream, turn, rate), name=f"terminal-{number}", daemon=True).start()


def _send(url: str, stream: Iterator[dict[str, Any]], turn: threading.Lock, rate: float) -> None:
    """Send purchases at their time, each waiting for its decision; what is refused or cut off is sent again."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=40)
    while True:
        with turn:
            time.sleep(1 / rate)
            body = json.dumps(next(stream))
        while not _is_answered(connection, body):
            time.sleep(1.0)


def _is_answered(connection: HTTPConnection, body: str) -> bool:
    try:
        connection.request("POST", "/ingest/purchases?wait=decide", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
    except (OSError, HTTPException):
        connection.close()
        return False
    return answer.status < 429

"""`make run`: the fraud app with purchases coming in, and a page that shows each decision."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from examples.fraud.purchases import purchases

APP = Path(__file__).with_name("app.py")
SENDERS = 4


def main() -> int:
    """Run the app until Ctrl-C; send it purchases once it is ready."""
    options = _options()
    command = [sys.executable, "-m", "penstock", "run", str(APP), "--data", options.data, "--port", str(options.port)]
    command += ["--listen", options.listen]
    print("A fraud desk: purchases come in by HTTP, Spark decides each one, the decision is pushed to the page.")
    run = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    signal.signal(signal.SIGTERM, lambda *_: run.terminate())
    try:
        for line in run.stdout or ():
            print(line, end="", flush=True)
            if line.startswith("ready "):
                url = line.split()[1]
                print(f"\nOpen {url}/ to see decisions as they happen. Ctrl-C stops everything.\n", flush=True)
                _start_senders(url, options.seed, options.rate)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # once is enough: it is stopping
        run.send_signal(signal.SIGINT)
        for line in run.stdout or ():
            print(line, end="", flush=True)
    return run.wait()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="examples.fraud", description=__doc__)
    parser.add_argument("--data", default=".penstock", help="folder for everything that is written")
    parser.add_argument("--port", type=int, default=8080, help="of the page and the doors")
    parser.add_argument("--listen", default="127.0.0.1:9092", help="address of the queue for Kafka clients")
    parser.add_argument("--rate", type=float, default=10.0, help="purchases a second")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="one seed makes one stream of purchases")
    return parser.parse_args()


def _start_senders(url: str, seed: int, rate: float) -> None:
    stream = purchases(seed, datetime.now(UTC), rate)
    turn = threading.Lock()
    for _ in range(SENDERS):
        threading.Thread(target=_send, args=(url, stream, turn, rate), daemon=True).start()


def _send(url: str, stream: Iterator[dict[str, Any]], turn: threading.Lock, rate: float) -> None:
    """Send purchases at their time, each waiting for its decision; what is refused or cut off is sent again."""
    host = urlsplit(url).netloc
    connection = HTTPConnection(host, timeout=40)
    while True:
        with turn:
            time.sleep(1 / rate)
            body = json.dumps(next(stream))
        while True:
            try:
                path = "/ingest/purchases?wait=decide"
                connection.request("POST", path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answer.read()
                if answer.status < 429:
                    break
            except (OSError, HTTPException):
                connection.close()
            time.sleep(1.0)


if __name__ == "__main__":
    sys.exit(main())

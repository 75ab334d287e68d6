"""`make run`: a minute with the queue. Every line that starts with $ is a command you can type yourself."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

PENSTOCK = str(Path(sys.executable).with_name("penstock"))
ADDRESS_OPTION = "--broker"
COLOUR = sys.stdout.isatty()


def say(text: str) -> None:
    """What happens next, for a person."""
    print(f"\n\033[1m{text}\033[0m" if COLOUR else f"\n{text}", flush=True)


def start_broker(data: str, listen: str) -> tuple[subprocess.Popen[str], str]:
    """A broker in the background, and its address once it serves."""
    print(f"$ penstock broker --data {data} --listen {listen} &", flush=True)
    broker = subprocess.Popen(
        [PENSTOCK, "broker", "--data", data, "--listen", listen], stdout=subprocess.PIPE, text=True
    )
    line = broker.stdout.readline().strip() if broker.stdout else ""
    if not line.startswith("ready "):
        sys.exit("the broker did not start; its reason stands above")
    print(line, flush=True)
    return broker, line.removeprefix("ready ")


def run(*words: str, text: str | None = None, shown: str | None = None) -> str:
    """Run a penstock command as a user would, and show it."""
    print(f"$ {shown or 'penstock ' + ' '.join(words)}", flush=True)
    done = subprocess.run([PENSTOCK, *words], input=text, capture_output=True, text=True, check=False, timeout=60)
    lines = (done.stdout + done.stderr).rstrip().splitlines()
    hidden = len(lines) - 8
    for line in lines[:8]:
        print(line)
    if hidden > 0:
        print(f"… and {hidden} more lines")
    if done.returncode:
        sys.exit(f"that ended with status {done.returncode}")
    return done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-tour-") as data:
        say("1. A queue. It speaks Kafka's protocol: any Kafka client in any language can use it.")
        broker, address = start_broker(data, "127.0.0.1:0")
        try:
            tour(broker, address, data)
        finally:
            broker.kill()


def tour(broker: subprocess.Popen[str], address: str, data: str) -> None:
    at = (ADDRESS_OPTION, address)
    run("topics", "create", "purchases", "--partitions", "1", *at)

    say("2. Three purchases. Each is on disk, fsynced, before it is acknowledged.")
    purchases = "".join(f'{{"card": "{card}", "amount": {amount}}}\n' for card, amount in
                        (("4711", 20), ("0815", 950), ("4711", 3)))  # fmt: skip
    run(
        "produce",
        "purchases",
        *at,
        text=purchases,
        shown=f"penstock produce purchases {' '.join(at)} < purchases.ndjson",
    )
    before = run("consume", "purchases", "--from", "beginning", "--until-end", *at)

    say("3. kill -9: no goodbye, no flush.")
    print(f"$ kill -9 {broker.pid}", flush=True)
    broker.send_signal(signal.SIGKILL)
    broker.wait()

    say("4. The same command again. It recovers by itself, and every purchase is where it was.")
    second, _ = start_broker(data, address)
    try:
        after = run("consume", "purchases", "--from", "beginning", "--until-end", *at)
        if after != before:
            sys.exit("something acknowledged was lost: this is a bug, please report it")

        say("5. What is on disk, checked byte by byte.")
        run("doctor", "--data", data)
    finally:
        second.terminate()
        second.wait()
    say("That is the queue. The rest of the way is in README.md: what is promised, and which test proves it.")


if __name__ == "__main__":
    main()

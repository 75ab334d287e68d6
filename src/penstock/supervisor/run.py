"""`penstock run`: the app, the data folder and the addresses are made sure of, then the supervisor starts."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from penstock.app import App
from penstock.client.topics import copies_of, look_at_queue
from penstock.config.addresses import format_address, named_address
from penstock.errors import ConfigError, PenstockError
from penstock.guarantee import Queue
from penstock.kafka.target import KafkaTarget
from penstock.plan.declaration import declaration_of
from penstock.plan.planner import plan_app
from penstock.plan.run_spec import RunSpec
from penstock.plan.text import plan_lines, queue_words
from penstock.plan.topics import adopt_faults
from penstock.process.app_loader import is_loading, load_app, need_spark
from penstock.process.run_spec_file import write_spec
from penstock.supervisor.options import RunOptions, load_options, refuse_addresses
from penstock.supervisor.supervisor import Say, Supervisor

_FREE_WITHIN_S = 3.0


def run(
    app: App,
    *,
    data: str | None = None,
    port: int | None = None,
    queue: str = "",
    listen: str | None = None,
    adopt: Sequence[str] = (),
    take_over: bool = False,
) -> None:
    """Run an app from its own script until Ctrl-C; call it under `if __name__ == "__main__"`.

    `adopt` names topics that Penstock did not make and may change; `take_over` ends another run of the app.

    What is not given comes from penstock.toml or [tool.penstock], then from PENSTOCK_*, as for `penstock run`.
    """
    if is_loading():
        raise ConfigError("penstock.run was called while the app was loaded: put it under if __name__ == '__main__'")
    try:
        main = sys.modules["__main__"]
        file = getattr(main, "__file__", None)
        names = [name for name, value in vars(main).items() if value is app]
        if file is None or not names:
            raise ConfigError("penstock.run needs an App that is a global of a script, which its processes import")
        options = load_options({"data": data, "listen": listen}, port=port, queue=queue)
        options = replace(options, adopt=tuple(adopt), take_over=take_over)
        status = supervise(f"{file}:{names[0]}", options, print_line)
    except ConfigError as wrong:
        for fault in wrong.faults:
            sys.stderr.write(f"penstock: {fault}\n")
        status = 2
    except PenstockError as failed:
        sys.stderr.write(f"penstock: {failed}\n")
        status = 1
    if status:
        sys.exit(status)


def print_line(who: str, text: str) -> None:
    """One line of a run; what is not of a tier stands at the margin."""
    with suppress(OSError):  # whoever read it is gone: no reason to stop an app
        sys.stdout.write(f"{who:<8} {text}\n" if who else f"{text}\n")
        sys.stdout.flush()


def supervise(spec: str, options: RunOptions, say: Say) -> int:
    """Run the app that `spec` names until SIGINT or SIGTERM; ConfigError if it cannot be."""
    refuse_addresses(options)
    app = load_app(spec)
    kind = look_at_queue(options.queue) if options.queue else Queue()
    plan = plan_app(app, kind)
    if faults := adopt_faults(plan, options.adopt):
        raise ConfigError(*faults)
    need_spark(plan)
    data = Path(options.data).absolute()
    lock = _lock(data)
    try:
        options = replace(
            options, data=str(data), edge=replace(options.edge, listen=_settled("port", options.edge.listen))
        )
        queue = options.queue or KafkaTarget.parse(_settled("listen", options.broker.listen))
        place, colon, variable = spec.partition(":")
        absolute = str(Path(place).absolute()) if place.endswith(".py") else place
        write_spec(
            RunSpec(
                app=absolute + colon + variable,
                declared=declaration_of(app),
                data=str(data),
                queue=queue,
                kind=kind,
                edge=options.edge,
                analyze=options.analyze,
            ),
            data / "run" / "spec.json",
        )
        say("", f"{plan.app} on {queue_words(kind.kind, str(queue))}, data in {options.data}")
        copies = copies_of(queue, list(plan.topics)) if kind.kind == "kafka" else None
        for line in plan_lines(plan, copies=copies):
            say("", f"  {line}")
        return asyncio.run(Supervisor(plan, options, queue, data, say).run())
    finally:
        os.close(lock)


def _lock(data: Path) -> int:
    """Only one run writes to a folder."""
    folder = data / "run"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"--data {data} cannot be written to ({error.strerror})") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        raise ConfigError(f"another penstock run uses {data}: stop it, or give another --data") from None
    return lock


def _settled(name: str, listen: str) -> str:
    """The address with a port that stays the same however often a child starts again; ConfigError if it is taken."""
    host, port = named_address(name, listen)
    if port:
        _await_free(name, host, port)
        return listen
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.bind((host, 0))
        port = probe.getsockname()[1]
    return format_address((host, port))


def _await_free(name: str, host: str, port: int) -> None:
    """Before anything starts; what a run that was killed held is free within a moment."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    deadline = time.monotonic() + _FREE_WITHIN_S
    while True:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                return probe.bind((host, port))
            except OSError as error:
                if time.monotonic() > deadline:
                    raise ConfigError(
                        f"cannot listen on {host}:{port} ({error.strerror}): choose another --{name}"
                    ) from None
        time.sleep(0.05)

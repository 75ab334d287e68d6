"""How an app is run: everything but the app, from the file, the environment and flags."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from penstock.config.addresses import named_address, read_addresses
from penstock.config.analyze import AnalyzeConfig
from penstock.config.broker import BrokerConfig
from penstock.config.edge import EdgeConfig
from penstock.config.layers import load_config
from penstock.edge.guard import refuse_open_edge
from penstock.errors import ConfigError
from penstock.kafka.target import KafkaTarget

Table = TypeVar("Table", BrokerConfig, EdgeConfig, AnalyzeConfig)


@dataclass(frozen=True)
class RunOptions:
    """How an app is run: everything but the app."""

    data: str = ".penstock"
    queue: KafkaTarget | None = None  # a queue that runs already; None: our own broker, started with the app
    adopt: tuple[str, ...] = ()  # topics of others that become the app's
    take_over: bool = False  # end another run of the app
    broker: BrokerConfig = field(default_factory=BrokerConfig)
    edge: EdgeConfig = field(default_factory=EdgeConfig)
    analyze: AnalyzeConfig = field(default_factory=AnalyzeConfig)


def load_options(flags: Mapping[str, object], *, port: int | None, queue: str) -> RunOptions:
    """How to run here: the settings in force, then what was given; `flags` are the broker's, and `insecure` of both.

    `queue` is HOST:PORT[,HOST:PORT…] of a queue that runs already, or empty.
    """
    faults: list[str] = []

    def table(kind: type[Table], given: Mapping[str, object]) -> Table:
        try:
            return load_config(Path.cwd(), os.environ, given, kind)[0]
        except ConfigError as wrong:
            faults.extend(fault for fault in wrong.faults if fault not in faults)
            return kind()

    broker = table(BrokerConfig, flags)
    edge = table(EdgeConfig, {"insecure": flags.get("insecure")})
    analyze = table(AnalyzeConfig, {})
    if not analyze.master.startswith("local") and "spark.jars" not in analyze.spark:
        faults.append(
            f"analyze.master is {analyze.master}, and its executors do not get Penstock's jars: give their paths in "
            "[analyze.spark] as spark.jars, or say 'local'"
        )
    target = None
    try:
        target = KafkaTarget.parse(queue) if queue else None
    except ValueError as wrong:
        faults.append(f"queue: {wrong}")
    if faults:
        raise ConfigError(*faults)
    if port is not None:
        edge = replace(edge, listen=f"{edge.listen.rpartition(':')[0]}:{port}")
    return RunOptions(data=broker.data, queue=target, broker=broker, edge=edge, analyze=analyze)


def refuse_addresses(options: RunOptions) -> None:
    """ConfigError if an address makes no sense, or lets other machines in without a token."""
    if options.queue is None:
        read_addresses(options.broker)
    refuse_open_edge(options.edge, named_address("edge.listen", options.edge.listen)[0])

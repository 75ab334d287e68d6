"""Which Kafka a client connects to: the addresses of its brokers. It has no security settings yet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from penstock.config.addresses import Address, format_address, parse_addresses


@dataclass(frozen=True, slots=True)
class KafkaTarget:
    """A queue as its clients see it: our own broker, or a Kafka cluster. `client.factory` makes clients from it."""

    addresses: tuple[Address, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """The target of HOST:PORT[,HOST:PORT…]; ValueError says what is wrong with the text."""
        return cls(tuple(parse_addresses(text)))

    def at(self, host: str, port: int) -> Self:
        """One broker of the same queue, for a request that only this broker answers."""
        return replace(self, addresses=((host, port),))

    def __str__(self) -> str:
        """HOST:PORT[,HOST:PORT…]."""
        return ",".join(map(format_address, self.addresses))

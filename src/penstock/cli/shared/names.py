"""Names of topics, groups and transactional ids as they are given: refused here if no broker could take them."""

from __future__ import annotations

from collections.abc import Callable

import click

BYTES_MAX = 32_767  # a name's length has 16 bits in Kafka's requests; the client library ends or waits for ever


def _name(noun: str, see: str) -> Callable[[str], str]:
    """What click takes for a type; `see` is the command that shows which names there are."""

    def name(given: str) -> str:
        size = len(given.encode("utf-8", "surrogateescape"))
        if not given:
            raise click.BadParameter(f"the name of a {noun} cannot be empty: '{see}' shows what there is")
        if size > BYTES_MAX:
            raise click.BadParameter(f"the name of a {noun} has at most {BYTES_MAX} bytes, and this one {size}")
        return given

    return name


TOPIC = _name("topic", "penstock topics list")
GROUP = _name("group", "penstock groups list")
TRANSACTIONAL_ID = _name("transactional id", "penstock transactions list")

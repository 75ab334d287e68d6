"""HOST:PORT as people write it: the one place that reads addresses."""

from __future__ import annotations

from penstock.config import BrokerConfig

PORT_MAX = 65535
Address = tuple[str, int]
_EXAMPLE = BrokerConfig().listen


def parse_address(text: str) -> Address:
    """('127.0.0.1', 9092) from '127.0.0.1:9092', ('::1', 9092) from '[::1]:9092'; ValueError says what is wrong."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"an IPv6 address stands in brackets, as in [::1]:9092, not {text!r}")
    if not colon or not host:
        raise ValueError(f"an address is HOST:PORT, as in {_EXAMPLE}, not {text!r}")
    if not port.isascii() or not port.isdigit() or int(port) > PORT_MAX:
        raise ValueError(f"the port must be 0 to {PORT_MAX}, not {port!r}")
    return host, int(port)


def parse_addresses(text: str) -> list[Address]:
    """The addresses of a list with commas; ValueError says what is wrong with the first that is none."""
    return [parse_address(one.strip()) for one in text.split(",")]

"""HOST:PORT as people write it, and which addresses this machine alone can reach."""

from __future__ import annotations

import ipaddress

from penstock.config.broker import BrokerConfig
from penstock.errors import ConfigError

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


def format_address(address: Address) -> str:
    """HOST:PORT, which `parse_address` reads."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_addresses(text: str) -> list[Address]:
    """The addresses of a list with commas; ValueError says what is wrong with the first that is none."""
    return [parse_address(one.strip()) for one in text.split(",")]


def read_addresses(config: BrokerConfig) -> dict[str, Address]:
    """The addresses of the configuration by name; ConfigError with all that is wrong about them."""
    found: dict[str, Address] = {}
    faults: list[str] = []
    for name in ("listen", "metrics", "advertise"):
        text = getattr(config, name)
        try:
            if text:
                found[name] = named_address(name, text)
                if name != "advertise":
                    refuse_exposure(name, found[name][0], config.insecure)
        except ConfigError as wrong:
            faults += wrong.faults
    if not faults and found["listen"][0] in ("0.0.0.0", "::") and "advertise" not in found:
        faults.append(
            "listening on every address needs advertise, the HOST:PORT that clients are told to connect to: give "
            "PENSTOCK_BROKER_ADVERTISE, or --advertise to 'penstock broker'"
        )
    if faults:
        raise ConfigError(*faults)
    return found


def named_address(name: str, text: str) -> Address:
    """HOST:PORT of the setting `name`; ConfigError if it is none."""
    try:
        return parse_address(text)
    except ValueError as wrong:
        raise ConfigError(f"{name}: {wrong}") from None


def refuse_exposure(name: str, host: str, insecure: bool) -> None:
    """Without authentication, only this machine may reach the broker, unless the operator insists."""
    try:
        is_loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_loopback = host == "localhost"
    if not is_loopback and not insecure:
        raise ConfigError(
            f"{name} {host} can be reached from other machines, and this broker has no authentication yet: "
            "listen on 127.0.0.1, or give --insecure if the network is trusted"
        )

"""Addresses to listen on: what they must look like, and which of them this machine alone can reach."""

from __future__ import annotations

import ipaddress

from penstock.addresses import Address, parse_address
from penstock.config import BrokerConfig
from penstock.errors import ConfigError


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

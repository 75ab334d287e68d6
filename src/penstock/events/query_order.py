"""What an operator orders a query to do: a record of penstock.APP.orders, or a line of a file."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Action(StrEnum):
    """What a query is to do."""

    PAUSE = "pause"  # stop, and stay so over starts of the app
    RESUME = "resume"
    RESTART = "restart"
    START = "start"  # from another place, or with state that another text of the query made
    DROP = "drop"  # remove what is left of a query that the app no longer declares


BEGINNING, LATEST = "beginning", "latest"


class QueryOrder(msgspec.Struct, frozen=True, kw_only=True):
    """One order. Orders of a query are obeyed once each, as they stand in their log."""

    id: str
    app: str = ""  # empty in the file of a data folder, which has one app
    query: str
    action: Action
    begin: str = ""  # of START: BEGINNING, LATEST, or milliseconds since 1970
    keep_state: bool = False  # of START: go on with the state and the positions that are there
    at_ms: int = 0  # when it was given


_decoder = msgspec.json.Decoder(QueryOrder)


def encode_order(order: QueryOrder) -> bytes:
    """An order as a record or a line."""
    return msgspec.json.encode(order)


def decode_order(value: bytes | None) -> QueryOrder | None:
    """The order in a record or a line; None if it holds none: every client may write to the topic."""
    try:
        return _decoder.decode(value or b"")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None

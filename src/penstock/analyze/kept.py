"""What is kept of a query beside its checkpoint, and what an order makes of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from penstock.analyze.fingerprint.comparison import Fingerprint
from penstock.events.query_order import Action, QueryOrder

Starts = Mapping[str, Mapping[str, int]]  # topic, partition, offset; JSON has no numbers as names


@dataclass(frozen=True)
class Kept:
    """A query as it last started, and what it was ordered to do. Files of earlier versions lack some fields."""

    mode: str = "auto"
    reason: str | None = None
    topics: Mapping[str, str] = field(default_factory=dict)  # the ids of the topics that its checkpoint points into
    writes: str = ""
    fingerprint: Fingerprint | None = None
    is_paused: bool = False
    is_void: bool = False  # the checkpoint is to be removed before the next start, which begins at `begin`
    begin: str = ""  # an end of the topics, or milliseconds since 1970; empty: as its guarantee says
    starts: Starts = field(default_factory=dict)  # the offsets of `begin`, found when the checkpoint was removed
    obeyed: Mapping[str, str] = field(default_factory=dict)  # the last order that was obeyed, by the log it stood in


NEW = Kept()
_decoder = msgspec.json.Decoder(Kept)


def encode_kept(kept: Kept) -> bytes:
    """The content of its file."""
    found: dict[str, Any] = msgspec.to_builtins(kept)
    return msgspec.json.encode(found)


def decode_kept(content: bytes) -> Kept:
    """What such a file says; of one that cannot be read nothing is known."""
    try:
        return _decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return NEW


def obey(kept: Kept, order: QueryOrder, log: str) -> Kept:
    """What is kept once `order`, which stands in `log`, is obeyed. Obeying it again changes nothing more."""
    obeyed = {**kept.obeyed, log: order.id}
    if order.action is Action.PAUSE:
        return replace(kept, is_paused=True, obeyed=obeyed)
    if order.action is Action.START and order.begin:
        # Everything but the orders belongs to the checkpoint that is void.
        return Kept(writes=kept.writes, is_void=True, begin=order.begin, obeyed=obeyed)
    if order.action is Action.START and order.keep_state:
        return replace(kept, fingerprint=None, is_paused=False, obeyed=obeyed)  # the next start takes today's
    if order.action is Action.DROP:
        return replace(kept, obeyed=obeyed)  # of a query that is declared: nothing to do
    return replace(kept, is_paused=False, obeyed=obeyed)


def pass_over(kept: Kept, orders: Sequence[QueryOrder], log: str) -> Kept:
    """What a query keeps that is new here: orders given before were for another checkpoint, but a pause holds."""
    if not orders or log in kept.obeyed:
        return kept
    obeyed = {**kept.obeyed, log: orders[-1].id}
    return replace(kept, is_paused=kept.is_paused or orders[-1].action is Action.PAUSE, obeyed=obeyed)


def pending(orders: Sequence[QueryOrder], obeyed: str | None) -> list[QueryOrder]:
    """The orders of a query that come after the last one that was obeyed; all if that one is not among them."""
    at = max((number for number, order in enumerate(orders) if order.id == obeyed), default=-1)
    return list(orders[at + 1 :])


def order_words(order: QueryOrder) -> str:
    """What is ordered, as a verb and its object."""
    if order.action is not Action.START:
        return order.action
    if order.keep_state:
        return "start with the state that is there"
    return f"start from {order.begin}"

"""Which batch of a query was committed last: told by a token that is committed with its results. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

import msgspec

from penstock.errors import PenstockError

_DIGEST_LENGTH = 32
_RESET = -1  # the number of the batch before the first


class TokenError(PenstockError):
    """A batch that is neither the next one nor the last one again: going on would repeat results, or lose some."""


@dataclass(frozen=True, slots=True)
class Token:
    """One batch: its number, in which life of the query (Spark's id of a checkpoint), and what it reads."""

    batch: int
    query_id: str
    digest: str


def token_of(batch: int, query_id: str, ranges: Sequence[str]) -> Token:
    """The token of a batch that reads these offsets, as Spark's checkpoint tells them."""
    return Token(batch, query_id, sha256("\n".join(ranges).encode()).hexdigest()[:_DIGEST_LENGTH])


def reset_token(why: str) -> Token:
    """What stands before batch 0 of a new checkpoint, whatever the checkpoint before had committed."""
    return Token(_RESET, "", why)


def encode_token(token: Token) -> bytes:
    """A token as a record."""
    return msgspec.json.encode(token)


def decode_token(value: bytes | None) -> Token:
    """The token in a record; TokenError if it is none."""
    try:
        return msgspec.json.decode(value or b"", type=Token)
    except msgspec.DecodeError:
        raise TokenError(f"what was noted of its last batch cannot be read: {value!r}") from None


def is_done(batch: Token, last: Token | None) -> bool:
    """Whether the results of `batch` stand already, `last` being the one committed; TokenError if none can tell."""
    begin_anew = "'penstock queries start QUERY --from beginning' begins again, and repeats results"
    if last is None or last.batch == _RESET:
        if batch.batch == 0:
            return False
        raise TokenError(
            f"it goes on with batch {batch.batch}, and the queue knows of no batch committed before it: it was begun "
            f"at least once, or with another queue; {begin_anew}"
        )
    if batch.query_id != last.query_id:
        raise TokenError(f"what it writes was begun from another checkpoint, which is not this one; {begin_anew}")
    if batch == last:
        return True
    if batch.batch == last.batch + 1:
        return False
    told = "with other events" if batch.batch == last.batch else f"and batch {last.batch} was committed last"
    raise TokenError(f"its checkpoint goes on with batch {batch.batch} {told}: it was put back, or lost; {begin_anew}")

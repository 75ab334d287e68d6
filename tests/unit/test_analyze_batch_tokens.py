"""Which batch is next, which is the last one again, and which would repeat or lose results."""

from __future__ import annotations

import pytest

from penstock.analyze.exactly_once.batch_tokens import Token, TokenError, decode_token, encode_token, is_done, token_of
from penstock.analyze.failures import failure_of

LAST = token_of(7, "life", ['{"numbers":{"0":100}}'])


def test_the_next_batch_is_written_and_the_last_one_again_is_not() -> None:
    assert not is_done(token_of(8, "life", ["more"]), LAST)
    assert is_done(token_of(7, "life", ['{"numbers":{"0":100}}']), LAST)
    assert not is_done(token_of(0, "life", []), None)


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (token_of(7, "life", ['{"numbers":{"0":101}}']), "batch 7 with other events"),
        (token_of(6, "life", ["less"]), "batch 7 was committed last"),
        (token_of(9, "life", ["more"]), "batch 7 was committed last"),
        (token_of(8, "another", ["more"]), "begun from another checkpoint"),
    ],
)
def test_a_batch_that_is_neither_is_refused_with_the_way_out(batch: Token, words: str) -> None:
    """A checkpoint that was put back, lost by a power cut, or is another one."""
    with pytest.raises(TokenError, match=words) as refused:
        is_done(batch, LAST)
    assert "penstock queries start" in str(refused.value)


def test_a_query_that_was_begun_otherwise_is_refused() -> None:
    """Nobody knows whether the results of its next batch stand already."""
    with pytest.raises(TokenError, match="begun at least once"):
        is_done(token_of(3, "life", []), None)


def test_a_token_comes_back_from_its_record_and_nothing_else_does() -> None:
    assert decode_token(encode_token(LAST)) == LAST
    for value in (None, b"", b"{}", b"7"):
        with pytest.raises(TokenError):
            decode_token(value)


def test_such_a_batch_parks_its_query() -> None:
    """Told through Spark's words: trying again would not help."""
    said = (
        "[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function in foreach batch sink.\n"
        "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call "
        'last):\n  File "once.py", line 46, in write\n'
        "penstock.analyze.exactly_once.batch_tokens.TokenError: its checkpoint is another\n"
    )
    failure = failure_of(said)
    assert (failure.kind, failure.reason) == ("lost", "its checkpoint is another")

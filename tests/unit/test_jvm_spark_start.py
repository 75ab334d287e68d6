"""What happens at the start of the queries, and what may wait."""

from __future__ import annotations

from penstock.jvm.spark_start import is_time_to_improve


def test_the_next_start_is_not_improved_at_the_cost_of_this_one() -> None:
    """A busy machine is left alone for the first minutes of a start; not for ever."""
    assert not is_time_to_improve(5, load=0.1, processors=2)
    assert is_time_to_improve(15, load=0.1, processors=2)
    assert not is_time_to_improve(240, load=9.0, processors=2)
    assert is_time_to_improve(301, load=9.0, processors=2)

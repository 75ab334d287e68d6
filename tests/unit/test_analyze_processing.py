"""How long a query takes, over the last minute, and for how long it has not moved."""

from __future__ import annotations

from penstock.analyze.processing import add_look, processing
from penstock.analyze.progress import Movement, Numbers, mark_of, take_progress
from penstock.analyze.result_latency import Newest, take
from penstock.events.query_status import Processing


def test_least_mean_and_most_are_of_all_results_of_the_last_minute() -> None:
    """The mean weighs each result, not each look; a look of more than a minute ago is gone."""
    looks = add_look((), 1_000, [500.0])
    looks = add_look(looks, 30_000, [2.0, 4.0, 6.0])
    looks = add_look(looks, 61_000, [100.0])
    assert processing(looks, ()) == Processing(2.0, 28.0, 100.0, "result")


def test_a_minute_without_results_keeps_what_was_known() -> None:
    newest = take(Newest(), [({"penstock-time": b"1000"}, 1_007)], 5_000)
    newest = take(newest, [({}, 900_000)], 905_000)
    assert processing(newest.minute, ()) == Processing(7, 7.0, 7, "result")


def test_batches_count_where_results_do_not_say_whose_they_are() -> None:
    """One without rows is no work."""
    numbers = Numbers()
    for rows, took_ms in ((5, 400), (0, 9_000), (3, 200)):
        take_progress(numbers, {"numInputRows": rows, "batchDuration": took_ms}, 1_000)
    assert processing((), numbers.batches) == Processing(200, 300.0, 400, "batch")
    assert processing((), ()) is None


def test_a_clock_that_jumps_keeps_few_looks() -> None:
    looks = ()
    for number in range(1_000):
        looks = add_look(looks, 5_000_000 - number, [1.0])
    assert len(looks) <= 120


def test_a_result_dated_ahead_does_not_freeze_the_metric() -> None:
    """A look is dated by the clock of its reader, not by the timestamps of the results that it read."""
    newest = take(Newest(), [({"penstock-time": b"1000"}, 9_001_000)], 1_000)
    newest = take(newest, [({"penstock-time": b"2000"}, 2_007)], 2_000)
    assert processing(newest.minute, ()) == Processing(7, 4_500_003.5, 9_000_000, "result")
    newest = take(newest, [({"penstock-time": b"70000"}, 70_005)], 70_000)
    assert processing(newest.minute, ()) == Processing(5, 5.0, 5, "result")


def test_a_clock_that_steps_back_does_not_freeze_the_time_of_batches() -> None:
    """Batches are dated by the clock of the host."""
    numbers = Numbers()
    for at_ms, took_ms in ((9_000_000, 400), (1_000, 200), (70_000, 300)):
        take_progress(numbers, {"numInputRows": 5, "batchDuration": took_ms}, at_ms)
    assert processing((), numbers.batches) == Processing(300, 300.0, 300, "batch")


def test_a_query_has_stalled_since_it_last_moved_while_it_had_input() -> None:
    movement = Movement()
    assert movement.look(7, 10_000, has_input=True) == 0
    assert movement.look(7, 15_000, has_input=True) == 5_000
    assert movement.look(8, 16_000, has_input=True) == 0
    assert movement.look(8, 90_000, has_input=True) == 74_000
    assert movement.look(8, 91_000, has_input=False) == 0
    assert movement.look(8, 92_000, has_input=True) == 1_000


def test_a_start_again_is_no_movement_and_what_follows_is() -> None:
    """The mark goes back to the last commit: what was done since is done again."""
    movement = Movement()
    movement.look(50, 1_000, has_input=True)
    assert movement.look(20, 5_000, has_input=True) == 4_000
    assert movement.look(20, 6_000, has_input=True) == 5_000
    assert movement.look(21, 7_000, has_input=True) == 0


def test_commits_and_results_count_whichever_is_further() -> None:
    numbers = Numbers(positions={"in": {"0": 5, "1": 9}})
    assert mark_of(numbers, {("in", 0): 8, ("in", 1): 2, ("in", 2): 1}) == 8 + 9 + 1


def test_a_commit_is_a_movement_though_the_position_stays() -> None:
    """A real-time query does not move over the mark of a transaction, and commits all the same."""
    numbers, marks = Numbers(), []
    for _ in range(2):
        take_progress(numbers, {"numInputRows": 0, "sources": [{"endOffset": {"in": {"0": 5}}}]}, 1_000)
        marks.append(mark_of(numbers, {}))
    assert marks[1] > marks[0]

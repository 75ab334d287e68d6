"""What the last record of a lease means for a run."""

from __future__ import annotations

from penstock.client.lease import FREE_AFTER_MS, Found, Holder, LeaseRecord, Standing, standing


def holder(data: str) -> Holder:
    return Holder(data=data, host="mill", pid=1, since_ms=0, folder=f"/{data}")


def test_a_lease_is_free_before_its_first_record() -> None:
    assert standing(None, holder("a"), 0) is Standing.FREE


def test_the_same_data_goes_on_at_once() -> None:
    assert standing(Found(LeaseRecord(holder=holder("a")), 1_000), holder("a"), 1_001) is Standing.MINE


def test_another_run_holds_it_for_ten_seconds_of_the_queues_clock() -> None:
    found = Found(LeaseRecord(holder=holder("b")), 1_000)
    assert standing(found, holder("a"), 1_000 + FREE_AFTER_MS - 1) is Standing.HELD
    assert standing(found, holder("a"), 1_000 + FREE_AFTER_MS) is Standing.FREE


def test_a_released_lease_is_free_at_once() -> None:
    assert standing(Found(LeaseRecord(holder=holder("b"), is_held=False), 1_000), holder("a"), 1_000) is Standing.FREE

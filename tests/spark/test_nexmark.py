"""NEXMark: each of the 23 queries gives of a stream what a batch over the same events gives."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.guarantee import Queue
from penstock.plan.planner import plan_app
from penstock.testing import QueryTest, end_shared_spark

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.nexmark.app import nexmark
from examples.nexmark.events import events

COUNT, SEED, PIECES = 600, 7, 4
FAR = "2030-01-01T00:00:00Z"  # what ends every window
IN_PYTHON = ("q4", "q6")
Row = dict[str, Any]
Topics = dict[str, list[Row]]


@pytest.fixture(scope="module", autouse=True)
def _own_spark() -> Iterator[None]:
    yield
    end_shared_spark()


def stored() -> Topics:
    found: Topics = {"person": [], "auction": [], "bid": []}
    for event in events(COUNT, SEED):
        found[event.topic].append(event.row)
    return found


def pieces(topics: Topics) -> dict[str, list[list[Row]]]:
    """The events in their order, and then one of each topic that moves the watermark past all windows."""
    found = {}
    for topic, rows in topics.items():
        size = -(-len(rows) // PIECES)
        last = {
            **rows[-1],
            "id": -1,
            "auction": -1,
            "bidder": -1,
            "seller": -1,
            "category": -1,
            "dateTime": FAR,
            "expires": FAR,
        }
        last = {name: value for name, value in last.items() if name in rows[-1]}
        found[topic] = [*(rows[at : at + size] for at in range(0, len(rows), size)), [last]]
    return found


EVENTS = stored()
STREAMED = pieces(EVENTS)


def comparable(rows: list[Row]) -> list[str]:
    """The rows without an order; collections in a row have none either."""
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def is_of_the_last(row: Row) -> bool:
    return any(row.get(name) == -1 for name in ("id", "auction", "bidder", "seller")) or FAR[:4] in json.dumps(row)


@pytest.mark.parametrize("name", [query.name for query in nexmark.queries if query.name not in IN_PYTHON])
def test_a_stream_gives_what_a_batch_gives(name: str) -> None:
    query = QueryTest(nexmark, name)
    reads = nexmark_reads(name)
    run = query.stream(**{topic: STREAMED[topic] for topic in reads})
    batch = query.batch(**{topic: EVENTS[topic] for topic in reads})
    kinds = {result.headers["penstock-kind"] for results in run.written for result in results}
    rows = run.table if kinds == {"upsert"} else run.rows
    assert batch
    assert comparable([row for row in rows if not is_of_the_last(row)]) == comparable(batch)
    assert run.dead == []


def nexmark_reads(name: str) -> tuple[str, ...]:
    return plan_app(nexmark, Queue()).queries[name].reads


def winning_bids() -> dict[int, tuple[Row, Row]]:
    """The best bid on each auction, by hand."""
    by_auction = defaultdict(list)
    for bid in EVENTS["bid"]:
        by_auction[bid["auction"]].append(bid)
    won = {}
    for auction in EVENTS["auction"]:
        in_time = [b for b in by_auction[auction["id"]] if auction["dateTime"] <= b["dateTime"] <= auction["expires"]]
        if in_time:
            won[auction["id"]] = auction, min(in_time, key=lambda bid: (-bid["price"], bid["dateTime"]))
    return won


def test_the_average_of_the_winning_prices_of_each_category() -> None:
    prices = defaultdict(list)
    for auction, bid in winning_bids().values():
        prices[auction["category"]].append(bid["price"])
    run = QueryTest(nexmark, "q4").stream(auction=STREAMED["auction"], bid=STREAMED["bid"])
    assert averages(run.table, "category") == {key: sum(all) / len(all) for key, all in prices.items()}


def test_the_average_of_the_last_ten_winning_prices_of_each_seller() -> None:
    bids = defaultdict(list)
    for auction, bid in winning_bids().values():
        bids[auction["seller"]].append(bid)
    wanted = {}
    for seller, won in bids.items():
        last = sorted(won, key=lambda bid: bid["dateTime"])[-10:]
        wanted[seller] = sum(bid["price"] for bid in last) / len(last)
    run = QueryTest(nexmark, "q6").stream(auction=STREAMED["auction"], bid=STREAMED["bid"])
    assert averages(run.table, "seller") == wanted
    assert any(len(won) > 10 for won in bids.values())


def averages(rows: list[Row], key: str) -> dict[int, float]:
    return {row[key]: row["average"] for row in rows if row[key] != -1}

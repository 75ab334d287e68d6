"""The 23 queries of NEXMark as a Penstock app: 21 in SQL, and two with state in Python.

`max_by` and `collect_list` stand for ROW_NUMBER over the rows of a group, which Spark
does not stream; `collect_set` stands for COUNT(DISTINCT).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from penstock import App

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

nexmark = App("nexmark")

persons = nexmark.topic(
    "person",
    schema="id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, "
    "dateTime TIMESTAMP, extra STRING",
    key="id",
    event_time="dateTime",
)
auctions = nexmark.topic(
    "auction",
    schema="id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP, "
    "expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING",
    key="id",
    event_time="dateTime",
)
bids = nexmark.topic(
    "bid",
    schema="auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING",
    key="auction",
    event_time="dateTime",
)
WATERMARK = "4 seconds"

nexmark.sql("q0", "SELECT auction, bidder, price, dateTime, extra, _event FROM STREAM(bid)")
nexmark.sql("q1", "SELECT auction, bidder, 0.908 * price AS price, dateTime, extra, _event FROM STREAM(bid)")
nexmark.sql("q2", "SELECT auction, price, _event FROM STREAM(bid) WHERE auction % 123 = 0")
nexmark.sql(
    "q3",
    """
    SELECT p.name, p.city, p.state, a.id, a._event
    FROM STREAM(auction) a JOIN STREAM(person) p ON a.seller = p.id
    WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
)
nexmark.sql(
    "q5",
    """
    WITH counts AS (
        SELECT auction, window, count(*) AS n FROM STREAM(bid)
        GROUP BY auction, window(dateTime, '10 seconds', '2 seconds')),
    hottest AS (
        SELECT window.start AS began, max(n) AS most, collect_list(struct(n, auction)) AS each
        FROM counts GROUP BY window)
    SELECT began, most AS n, inline(filter(transform(each, x -> struct(x.n AS own, x.auction)), x -> x.own = most))
    FROM hottest""",
    watermark=WATERMARK,
)
nexmark.sql(
    "q7",
    """
    WITH highest AS (
        SELECT window.start AS began, max(price) AS top,
               collect_list(struct(auction, price, bidder, dateTime, extra)) AS each
        FROM STREAM(bid) GROUP BY window(dateTime, '10 seconds'))
    SELECT began, inline(filter(each, x -> x.price = top)) FROM highest""",
    watermark=WATERMARK,
    emit="final",
)
nexmark.sql(
    "q8",
    """
    WITH arrived AS (
        SELECT id, name, window FROM STREAM(person) GROUP BY id, name, window(dateTime, '10 seconds')),
    sold AS (
        SELECT seller, window FROM STREAM(auction) GROUP BY seller, window(dateTime, '10 seconds'))
    SELECT a.id, a.name, a.window.start AS began
    FROM arrived a JOIN sold s ON a.id = s.seller AND a.window = s.window""",
    watermark=WATERMARK,
)
nexmark.sql(
    "q9",
    """
    SELECT a.id, a.itemName, a.seller, a.category, max_by(
        struct(b.bidder, b.price, b.dateTime), struct(b.price, -unix_micros(b.dateTime))) AS won
    FROM STREAM(auction) a JOIN STREAM(bid) b ON a.id = b.auction AND b.dateTime BETWEEN a.dateTime AND a.expires
    GROUP BY a.id, a.itemName, a.seller, a.category""",
)
nexmark.sql(
    "q10",
    """
    SELECT auction, bidder, price, dateTime, extra,
           date_format(dateTime, 'yyyy-MM-dd') AS day, date_format(dateTime, 'HH:mm') AS minute, _event
    FROM STREAM(bid)""",
)
nexmark.sql(
    "q11",
    """
    SELECT bidder, count(*) AS bids, session_window.start AS began, session_window.end AS ended
    FROM STREAM(bid) GROUP BY bidder, session_window(dateTime, '10 seconds')""",
    watermark=WATERMARK,
)
nexmark.sql(
    "q12",  # by the time of acceptance: the time at which Spark happens to read an event is not of the event
    """
    SELECT bidder, count(*) AS bids, window.start AS began, window.end AS ended
    FROM (SELECT bidder, _event.time AS accepted FROM STREAM(bid))
    GROUP BY bidder, window(accepted, '10 seconds')""",
)
nexmark.sql(
    "q13",
    """
    SELECT b.auction, b.bidder, b.price, b.dateTime, s.value, b._event
    FROM STREAM(bid) b JOIN (SELECT id AS key, string(id) AS value FROM range(10000)) s ON b.auction % 10000 = s.key""",
)
nexmark.sql(
    "q14",
    """
    SELECT auction, bidder, 0.908 * price AS price,
           CASE WHEN hour(dateTime) BETWEEN 8 AND 18 THEN 'dayTime'
                WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime'
                ELSE 'otherTime' END AS bidTimeType,
           dateTime, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts, _event
    FROM STREAM(bid) WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
)
_STATISTICS = """
           count(*) AS total_bids,
           count(*) FILTER (WHERE price < 10000) AS rank1_bids,
           count(*) FILTER (WHERE price BETWEEN 10000 AND 999999) AS rank2_bids,
           count(*) FILTER (WHERE price >= 1000000) AS rank3_bids"""
_DISTINCT = """,
           size(collect_set(bidder)) AS total_bidders,
           size(collect_set(bidder) FILTER (WHERE price < 10000)) AS rank1_bidders,
           size(collect_set(bidder) FILTER (WHERE price BETWEEN 10000 AND 999999)) AS rank2_bidders,
           size(collect_set(bidder) FILTER (WHERE price >= 1000000)) AS rank3_bidders,
           size(collect_set(auction)) AS total_auctions"""
_DAY = "date_format(dateTime, 'yyyy-MM-dd')"
nexmark.sql("q15", f"SELECT {_DAY} AS day, {_STATISTICS}{_DISTINCT} FROM STREAM(bid) GROUP BY {_DAY}")
nexmark.sql(
    "q16",
    f"""
    SELECT channel, {_DAY} AS day, date_format(max(dateTime), 'HH:mm') AS minute, {_STATISTICS}{_DISTINCT}
    FROM STREAM(bid) GROUP BY channel, {_DAY}""",
)
nexmark.sql(
    "q17",
    f"""
    SELECT auction, {_DAY} AS day, {_STATISTICS}, min(price) AS min_price, max(price) AS max_price,
           avg(price) AS avg_price, sum(price) AS sum_price
    FROM STREAM(bid) GROUP BY auction, {_DAY}""",
)
nexmark.sql(
    "q18",
    """
    SELECT bidder, auction, max_by(struct(price, channel, dateTime), struct(dateTime, price)) AS last
    FROM STREAM(bid) GROUP BY bidder, auction""",
)
nexmark.sql(
    "q19",
    """
    WITH top AS (
        SELECT auction, slice(reverse(array_sort(collect_list(struct(price, bidder, dateTime)))), 1, 10) AS each
        FROM STREAM(bid) GROUP BY auction)
    SELECT auction, posexplode(each) AS (rank, bid) FROM top""",
)
nexmark.sql(
    "q20",
    """
    SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.dateTime, a.itemName, a.seller, a.category, b._event
    FROM STREAM(bid) b JOIN STREAM(auction) a ON b.auction = a.id WHERE a.category = 10""",
)
nexmark.sql(
    "q21",
    r"""
    SELECT auction, bidder, price, channel,
           CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2'
                WHEN 'baidu' THEN '3' ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END AS channel_id, _event
    FROM STREAM(bid)
    WHERE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) <> ''
       OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
)
nexmark.sql(
    "q22",
    """
    SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2,
           split_part(url, '/', 6) AS dir3, _event
    FROM STREAM(bid)""",
)

averages = nexmark.topic("q4", key="category")
sellers = nexmark.topic("q6", key="seller")


def bids_in_time(auction: DataFrame, bid: DataFrame) -> DataFrame:
    """Every bid on an auction that was open."""
    of_bid = bid.selectExpr("auction", "price", "dateTime AS bidAt")
    return auction.select("id", "seller", "category", "dateTime", "expires").join(
        of_bid, (auction["id"] == of_bid["auction"]) & of_bid["bidAt"].between(auction["dateTime"], auction["expires"])
    )


@nexmark.query(reads=[auctions, bids], writes=averages)
def q4(auction: DataFrame, bid: DataFrame) -> DataFrame:
    """The average of the winning prices in each category."""
    return (
        bids_in_time(auction, bid)
        .groupBy("category")
        .applyInPandasWithState(
            _average_of_best, "category BIGINT, average DOUBLE", "best STRING", "update", "NoTimeout"
        )
    )


@nexmark.query(reads=[auctions, bids], writes=sellers)
def q6(auction: DataFrame, bid: DataFrame) -> DataFrame:
    """The average winning price of the last ten auctions of each seller, by the time of the winning bid."""
    return (
        bids_in_time(auction, bid)
        .groupBy("seller")
        .applyInPandasWithState(_average_of_last, "seller BIGINT, average DOUBLE", "best STRING", "update", "NoTimeout")
    )


def _average_of_best(key: tuple[int], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    best = _best(frames, state)
    yield _row(category=key[0], average=sum(price for price, _ in best.values()) / len(best))


def _average_of_last(key: tuple[int], frames: Iterator[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
    best = _best(frames, state)
    last = sorted(best.values(), key=lambda won: -won[1])[:10]
    yield _row(seller=key[0], average=sum(price for price, _ in last) / len(last))


def _best(frames: Iterator[pd.DataFrame], state: Any) -> dict[str, list[int]]:
    """The highest bid on each auction, and when it came: of two equal ones the first."""
    best: dict[str, list[int]] = json.loads(state.get[0]) if state.exists else {}
    for frame in frames:
        for id, price, at in zip(frame["id"], frame["price"], frame["bidAt"], strict=True):
            bid = [int(price), int(at.value)]
            known = best.get(str(id))
            if known is None or (bid[0], -bid[1]) > (known[0], -known[1]):
                best[str(id)] = bid
    state.update((json.dumps(best),))
    return best


def _row(**columns: float) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({name: [value] for name, value in columns.items()})

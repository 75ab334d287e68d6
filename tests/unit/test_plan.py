"""An app becomes a plan, or every reason why it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import App, Guarantee, sources
from penstock.edge.dashboard.app_facts import page_facts
from penstock.errors import ConfigError
from penstock.guarantee import Queue
from penstock.plan.checks import app_faults
from penstock.plan.plan import Plan
from penstock.plan.planner import plan_app
from penstock.plan.sql import sql_with_views, stream_names
from penstock.plan.text import plan_json, plan_lines
from penstock.plan.topics import wanted_topics

SCHEMA = "id STRING, card STRING, amount DOUBLE, at TIMESTAMP"


def shop() -> App:
    app = App("shop")
    purchases = app.topic("purchases", schema=SCHEMA, key="card", event_time="at", identity=["id"], partitions=2)
    app.ingest(sources.Http("/buy"), into=purchases)

    @app.query(reads=purchases, writes="decisions")
    def decide(purchases: Any) -> Any:
        return purchases

    app.sql("spend", "SELECT card, sum(amount) AS spent FROM STREAM(purchases) GROUP BY card")
    app.deliver("decisions")
    return app


def planned(app: App) -> Plan:
    return plan_app(app, Queue())


def faults(app: App) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        planned(app)
    return list(refused.value.faults)


def test_a_declaration_does_nothing_and_stays_what_it_was() -> None:
    """The query function is an ordinary function."""
    app = App("a")

    @app.query(reads="t", writes="u")
    def double(n: int) -> int:
        return 2 * n

    assert double(2) == 4
    assert not app.topics


def test_what_is_written_becomes_a_topic_like_what_it_is_made_from() -> None:
    """As many partitions, and the weakest guarantee of its inputs."""
    app = shop()
    weak = Guarantee(loss="some", delivery="at-most-once")
    app.topic("clicks", schema="id STRING", guarantee=weak, partitions=3)
    app.query(reads=["purchases", "clicks"], writes="both", name="both")(lambda a, b: a)
    app.deliver("both")
    plan = planned(app)
    assert plan.topics["decisions"].partitions == 2
    assert (plan.topics["both"].partitions, plan.topics["both"].guarantee.loss) == (3, "some")
    assert plan.queries["both"].from_latest
    decisions, both = plan.paths
    assert (decisions.links, decisions.weakest_link) == (("purchases", "decisions"), "")
    assert (both.guarantee.delivery, both.weakest_link) == ("at-most-once", "clicks")
    assert plan.read_topics == ["purchases", "clicks"]
    assert list(plan.dead_topics) == ["purchases.dead", "clicks.dead"]


def test_a_path_names_the_link_that_weakens_it() -> None:
    """Also where the output promises less than its input."""
    app = shop()
    app.topic("decisions", guarantee=Guarantee(loss="some"))
    (path,) = planned(app).paths
    assert (path.guarantee.loss, path.weakest_link) == ("some", "decisions")


def test_all_faults_are_named_at_once() -> None:
    """Whoever must mend them wants the list, not the first."""
    app = App("no good")
    app.topic("t", schema="id STRNG")
    app.topic("u", schema="id STRING", key="idd", event_time="id", partitions=0, identity="nr")
    app.topic("u")
    app.topic("x.dead", guarantee=Guarantee(outage="catastrophic", loss="2 parsecs"))
    app.query(reads="u", writes="v", name="q1", mode="fast", every="soon", state="disc")(lambda: None)
    app.query(reads="purchase", writes="v", name="q2", mode="realtime", emit="final")(lambda x: x)
    app.query(reads="u", writes="penstock.queries", name="q3", emit="everything", late="keep")(lambda x: x)
    app.sql("empty", "SELECT 1")
    app.topic("lines", schema="line STRING, n INT", format="text")
    app.topic("rows", schema="line MAP<STRING, INT>", format="csv")
    app.topic("papers", schema="line STRING", format="pdf")
    app.ingest(sources.Http("/lines"), into="lines")
    app.query(reads="u", writes={"a b": "o", "dead": "o2"}, name="q4")(lambda x: x)
    app.deliver("nope", at="/elsewhere", slow_client="kill", backlog_max=0)
    app.ingest(sources.Http(), into="w")
    told = "\n".join(faults(app))
    for words in (
        "not 'no good'",
        "topic t: the schema does not parse: column id",
        "no column idd in the schema, did you mean id?",
        "no column nr",
        "event_time id must be a TIMESTAMP",
        "partitions is between 1 and 1000, not 0",
        "topic u is declared 2 times",
        "x.dead: names that end in .dead or .late",
        "not '2 parsecs'",
        "outage='catastrophic' needs three copies",
        "query q1: mode is one of auto, realtime, microbatch",
        "every is a duration",
        "state is one of disk, memory",
        "must take 1 DataFrame",
        "topic lines: format='text' needs a schema of one STRING column",
        "topic rows: format='csv' cannot carry column line, a MAP",
        "topic papers: format is one of json, text, bytes, csv, not 'pdf'",
        "ingest into lines: POST takes JSON, and the topic has format='text'",
        "query q4.dead: an output cannot be called dead",
        "query q4.a b: a query, and each of its outputs, is named by letters",
        "query q2: mode='realtime' writes changes only, and emit='final' needs whole batches",
        "query q3: late='keep' needs watermark=: without one no event is late",
        "query q3: emit is one of changes, final, all, not 'everything'",
        "query q2: reads the unknown topic purchase",
        "topic v has 2 writers (query q1, query q2)",
        "query q3: writes penstock.queries: names that end in .dead or .late, or begin with penstock., are",
        "the SQL text names no STREAM(topic)",
        "unknown topic nope",
        "a path looks like /live/NAME",
        "slow_client is one of",
        "backlog_max is between",
        "ingest into the unknown topic w",
    ):
        assert words in told


def test_a_cycle_is_named_once() -> None:
    """In the direction of the data."""
    app = App("a")
    for name in ("x", "y", "z"):
        app.topic(name, schema="id STRING")
    for source, target in (("x", "y"), ("y", "z"), ("z", "x")):
        app.query(reads=source, writes=target, name=f"{source}{target}")(lambda df: df)
    assert [fault for fault in faults(app) if "cycle" in fault] == ["a cycle: x -> y -> z -> x"]


def test_a_query_must_be_an_ordinary_function() -> None:
    """Neither coroutine nor generator."""
    app = shop()

    @app.query(reads="purchases", writes="a")
    async def later(df: Any) -> Any: ...

    @app.query(reads="purchases", writes="b")
    def many(df: Any) -> Any:
        yield df

    assert len([fault for fault in faults(app) if "ordinary function" in fault]) == 2


def test_streams_are_found_in_sql_but_not_in_its_strings_and_comments() -> None:
    """STREAM(topic) names what a text reads."""
    sql = "SELECT 'STREAM(no)' FROM stream ( `a.b` ) x JOIN STREAM(c-d) -- STREAM(never)\n/* STREAM(nor) */"
    assert stream_names(sql) == ["a.b", "c-d"]
    seen = sql_with_views(sql, lambda topic: f"<{topic}>")
    assert "<a.b>" in seen
    assert "<c-d>" in seen
    assert "'STREAM(no)'" in seen


def test_the_plan_is_told_with_every_reason() -> None:
    """To people and to programs, and only what has consequences."""
    plan = planned(shop())
    lines = list(plan_lines(plan, reasons=True))
    assert any("penstock.durability = disk: nothing acknowledged may be lost" in line for line in lines)
    assert "ingest   POST /ingest/buy -> purchases" in lines
    told = plan_json(plan)
    tiers = {topic["name"]: {s["tier"] for s in topic["settings"]} for topic in told["topics"]}
    assert tiers == {
        "purchases": {"queue", "ingest"},
        "decisions": {"queue", "analyze", "deliver"},
        "spend": {"queue", "analyze"},
    }


def test_the_path_of_a_delivery_shows_the_inputs_of_a_join_side_by_side() -> None:
    """Neither of them is read from the other. A topic that two queries read is drawn with its inputs once."""
    app = App("ads")
    for name in ("clicks", "impressions", "prices", "joined", "seen"):
        app.topic(name, schema="id STRING")
    app.query(reads=["clicks", "impressions"], writes="joined", name="join")(lambda clicks, impressions: clicks)
    app.query(reads="joined", writes="seen", name="see")(lambda joined: joined)
    app.query(reads=["joined", "seen", "prices"], writes="billed", name="bill")(lambda joined, seen, prices: joined)
    for topic in ("clicks", "joined", "billed"):
        app.deliver(topic)
    plan = planned(app)
    drawn = [
        "clicks",
        "(clicks + impressions) -> joined",
        "((clicks + impressions) -> joined + joined -> seen + prices) -> billed",
    ]
    assert [path.drawn for path in plan.paths] == drawn
    told = [line for line in plan_lines(plan) if line.startswith("deliver")]
    for line, path in zip(told, drawn, strict=True):
        assert f": {path}: at-least-once" in line
    assert [delivery["path"] for delivery in plan_json(plan)["deliveries"]] == drawn
    assert plan_json(plan)["deliveries"][1]["topics"] == ["impressions", "clicks", "joined"]
    assert [delivery["path"] for delivery in page_facts(plan)["deliveries"]] == drawn


@pytest.mark.parametrize(("every", "faults"), [("5 seconds", 0), ("4 seconds", 1)])
def test_a_real_time_query_may_say_how_often_it_commits(every: str, faults: int) -> None:
    """Spark takes no less than five seconds."""
    app = App("often")
    app.topic("t", schema="a INT")
    app.query(reads="t", writes="u", name="q", mode="realtime", every=every)(lambda t: t)

    assert len([fault for fault in app_faults(app, Queue()) if "at least 5 seconds" in fault]) == faults


def test_what_cannot_be_exactly_once_is_refused_with_the_way_out() -> None:
    """Real time, and deliveries that leave messages out; also where the promise came from what is read."""
    app = App("a")
    app.topic("pays", schema="id STRING", guarantee=Guarantee(delivery="exactly-once"))
    app.query(reads="pays", writes="booked", name="book", mode="realtime")(lambda pays: pays)
    app.query(reads="pays", writes="seen", name="see")(lambda pays: pays)
    app.deliver("booked", slow_client="conflate")
    app.deliver("seen")
    real_time, conflated = faults(app)
    assert "query book: mode='realtime'" in real_time
    assert "mode='microbatch'" in real_time
    assert "slow_client='disconnect'" in conflated


def test_exactly_once_goes_along_with_what_is_read() -> None:
    """The output of a query promises what its inputs promise, and its batches are noted in a topic of their own."""
    app = App("a")
    app.topic("pays", schema="id STRING", guarantee=Guarantee(delivery="exactly-once"))
    app.topic("seen", guarantee=Guarantee())
    app.query(reads="pays", writes="booked", name="book")(lambda pays: pays)
    app.query(reads="pays", writes="seen", name="see")(lambda pays: pays)
    app.deliver("seen")
    plan = planned(app)
    assert [query.is_transactional for query in plan.queries.values()] == [True, False]
    assert [t.name for t in wanted_topics(plan) if t.name.endswith(".batches")] == ["penstock.a.book.batches"]
    assert (plan.paths[0].guarantee.delivery, plan.paths[0].weakest_link) == ("at-least-once", "seen")


def test_a_value_of_a_wrong_type_is_a_sentence_and_hides_no_other_fault() -> None:
    """Not a TypeError from inside Penstock."""
    app = App("a")
    wrong: Any = "two"
    wrong_number: Any = 5
    app.topic("t", schema="id STRING", partitions=wrong, key=wrong_number, guarantee=Guarantee(loss=wrong_number))
    app.ingest(wrong, into="t")
    app.deliver("nowhere", backlog_max=wrong)
    app.query(reads="t", writes="u", name="q", every=wrong_number)(lambda t: t)
    with pytest.raises(ConfigError) as refused:
        plan_app(app, Queue())
    assert refused.value.faults == (
        "topic t: key must be a name, or several, not (5,)",
        "topic t: partitions must be a whole number, not 'two'",
        "topic t: guarantee: loss must be text, not 5",
        "query q: every must be text, not 5",
        "ingest into t: source must be a source such as sources.Http(), not 'two'",
        "delivery /live/nowhere: backlog_max must be a whole number, not 'two'",
        "delivery /live/nowhere: unknown topic nowhere",
    )

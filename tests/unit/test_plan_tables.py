"""Tables of an app: apart from its topics in the plan, and every fault of them at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock import App
from penstock.errors import ConfigError
from penstock.guarantee import Queue
from penstock.plan.checks import app_faults
from penstock.plan.declaration import app_of, declaration_of
from penstock.plan.planner import plan_app
from penstock.plan.sql import sql_with_views, stream_names, table_names
from penstock.plan.text import plan_json, plan_lines
from penstock.process.app_loader import load_app

PASSWORD = "a-password-of-ours"
CARDS = "card STRING NOT NULL, owner STRING"
DATABASE: Any = {"url": f"jdbc:postgresql://db/shop?password={PASSWORD}", "dbtable": "cards"}


def shop() -> App:
    app = App("shop")
    app.topic("purchases", schema="id STRING, card STRING", partitions=2)
    cards = app.table("cards", path="cards.csv", schema=CARDS, every="10 minutes")
    app.table("owners", format="jdbc", options=DATABASE)

    @app.query(reads=["owners", "purchases", cards], writes="billed")
    def bill(owners: Any, purchases: Any, cards: Any) -> Any:
        return purchases

    app.sql("owned", "SELECT p.id, p._event FROM STREAM(purchases) p LEFT JOIN TABLE(cards) c ON p.card = c.card")
    app.deliver("billed")
    return app


def test_a_table_is_an_input_and_no_topic() -> None:
    app = shop()
    declared = declaration_of(app)
    assert declared is not None
    for plan in (plan_app(app, Queue()), plan_app(app_of(declared), Queue())):
        bill, owned = plan.queries.values()
        assert (bill.inputs, bill.reads, bill.tables) == (
            ("owners", "purchases", "cards"), ("purchases",), ("owners", "cards"),
        )  # fmt: skip
        assert (owned.inputs, owned.reads, owned.tables) == (("purchases", "cards"), ("purchases",), ("cards",))
        assert list(plan.topics) == ["purchases", "billed", "owned"]
        assert plan.topics["billed"].partitions == 2
        assert plan.paths[0].links == ("purchases", "billed")
        assert plan.tables["cards"].every_ms == 600_000
        lines = list(plan_lines(plan, reasons=True))
        assert "table    cards: csv cards.csv, read again every 10 minutes" in lines
        assert "table    owners: jdbc, read at each start" in lines
        assert any(line.startswith("query    bill: table owners, purchases, table cards -> billed") for line in lines)
        assert plan_json(plan)["queries"][0]["tables"] == ["owners", "cards"]
        assert PASSWORD not in f"{lines} {plan_json(plan)} {plan} {app.tables}"
        assert plan.tables["owners"].without_secrets(f"no route to {DATABASE['url']}") == "no route to ***"


def test_every_fault_of_tables_is_told_at_once() -> None:
    app = App("shop")
    app.topic("purchases", schema="id STRING")
    app.table("purchases", path="a.parquet", format="parquet")
    app.table("cards", path="cards.csv", every="often")
    app.table("cards", schema=CARDS, every="10 ms")
    app.table("people", path="p.json", format="json", schema="card STRNG")
    app.table("owners", path="x", format="jdbc", options={"url": PASSWORD})
    app.table("shops", path="shops", format="xml")  # type: ignore[arg-type]
    app.table("a b", path="a.parquet", format="parquet")
    app.table("rates", path="r.parquet", format="parquet", options={"password": PASSWORD, 1: 2})  # type: ignore[dict-item]
    app.query(reads="cards", writes="alone", name="alone")(lambda cards: cards)
    app.query(reads=["purchases", "cards"], writes="few", name="few")(lambda purchases: purchases)
    app.sql("other", "SELECT * FROM STREAM(cards) JOIN TABLE(card) JOIN TABLE(purchases)")
    app.sql("still", "SELECT * FROM TABLE(cards)")
    found = list(app_faults(app, Queue()))
    for wanted in (
        "table cards is declared 2 times",
        "table purchases: there is a topic of that name",
        "table cards: format='csv' needs schema=",
        "table cards: every is a duration of a second or more, such as '10 minutes', not 'often'",
        "table cards: format='csv' needs path=",
        "table cards: every is a duration of a second or more, such as '10 minutes', not '10 ms'",
        "table people: the schema does not parse",
        "table owners: a table of a database has no path",
        "table owners: format='jdbc' needs options={'url': …, 'dbtable': …}",
        "table shops: format is one of csv, json, parquet, jdbc, not 'xml'",
        "table a b: a table is named by letters",
        "table rates: options must be a table of names and values, not a dict with others",
        "query alone: reads no topic: a table is joined to the events of a topic",
        "query few: must take 2 DataFrames, one for each topic and table it reads",
        "query other: cards is a table: write TABLE(cards), not STREAM(cards)",
        "query other: reads the unknown table card",
        "query other: purchases is a topic: write STREAM(purchases), not TABLE(purchases)",
        "query still: the SQL text names no STREAM(topic): a table is joined",
    ):
        assert any(fault.startswith(wanted) for fault in found), (wanted, found)
    assert not any(PASSWORD in fault for fault in found)
    with pytest.raises(ConfigError):
        plan_app(app, Queue())


def test_sql_names_tables_after_from_and_join_alone() -> None:
    """Elsewhere TABLE(name) is Spark's: an argument of a function."""
    sql = "SELECT 'FROM TABLE(a)' FROM STREAM(s) JOIN -- TABLE(b)\n table ( `c` ) x JOIN f(TABLE(d)) /* TABLE(e) */"
    assert (stream_names(sql), table_names(sql)) == (["s"], ["c"])
    assert sql_with_views(sql, str.upper) == (
        "SELECT 'FROM TABLE(a)' FROM S JOIN -- TABLE(b)\n C x JOIN f(TABLE(d)) /* TABLE(e) */"
    )


def test_a_path_is_beside_the_file_of_the_app(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from penstock import App\napp = App('shop')\n"
        "app.table('cards', path='cards.csv')\napp.table('old', path='/old/*.csv')\n"
        "app.table('far', path='s3a://far/rows.csv')\napp.table('none')\n"
    )
    paths = [table.path for table in load_app(str(tmp_path / "shop.py")).tables]
    assert paths == [str(tmp_path / "cards.csv"), "/old/*.csv", "s3a://far/rows.csv", None]

"""A plan made of what a run spec carries is the plan of the app."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from penstock import App, Guarantee, sources
from penstock.config.analyze import AnalyzeConfig
from penstock.config.edge import EdgeConfig
from penstock.guarantee import Queue
from penstock.kafka.target import KafkaTarget
from penstock.plan.declaration import app_of, declaration_of
from penstock.plan.plan import Plan
from penstock.plan.planner import plan_app
from penstock.plan.run_spec import RunSpec


def shop(example: dict[str, Any] | None = None) -> App:
    app = App("shop")
    paid = app.topic(
        "paid", schema="id STRING NOT NULL, at TIMESTAMP, n INT", key=("id", "n"), event_time="at", identity="id",
        partitions=3, guarantee=Guarantee(delivery="exactly-once", history="90 days"), example=example,
    )  # fmt: skip
    app.ingest(sources.Http("/payments"), into=paid)
    app.topic("large", schema="id STRING, at TIMESTAMP, n INT")
    app.sql("large", "SELECT * FROM STREAM(paid) WHERE n > 5", every="10 minutes")

    @app.query(reads=[paid, "large"], writes="both", watermark="5 minutes", spark={"spark.sql.ansi.enabled": False})
    def both(paid: Any, large: Any) -> Any:
        return paid

    app.deliver("both", at="/live/all", backlog_max=5)
    return app


def without_functions(plan: Plan) -> Plan:
    return replace(plan, queries={name: replace(query, function=None) for name, query in plan.queries.items()})


def test_the_plan_of_a_run_spec_is_that_of_the_app() -> None:
    app = shop({"id": "a", "n": 1})
    spec = RunSpec(
        app="shop.py", declared=declaration_of(app), data="", queue=KafkaTarget.parse("127.0.0.1:1"), kind=Queue(),
        edge=EdgeConfig(), analyze=AnalyzeConfig(),
    )  # fmt: skip
    read = msgspec.json.decode(msgspec.json.encode(spec), type=RunSpec)
    assert read.declared is not None
    assert without_functions(plan_app(app_of(read.declared), Queue())) == without_functions(plan_app(app, Queue()))


def test_what_json_cannot_carry_is_not_declared() -> None:
    """Then the edge imports the app, as it did."""
    assert declaration_of(shop({"id": object()})) is None

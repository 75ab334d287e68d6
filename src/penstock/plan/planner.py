"""From an app and a queue to everything that will run, or every reason why it cannot."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.app import App, Query, Topic
from penstock.errors import ConfigError
from penstock.events.record_format import RecordFormat
from penstock.events.schema import parse_schema
from penstock.guarantee import Queue
from penstock.plan.checks import app_faults, checkable
from penstock.plan.guarantees import promises
from penstock.plan.inputs import queries_of
from penstock.plan.paths import path_of
from penstock.plan.plan import Door, Plan, QueryPlan, TopicPlan
from penstock.plan.policies import policy_of
from penstock.plan.tables import plan_table


def plan_app(app: App, queue: Queue) -> Plan:
    """The plan of an app on a queue; ConfigError with every fault there is."""
    faults = list(app_faults(app, queue))
    if faults:
        raise ConfigError(*faults)
    return _plan(app, queue)


def plan_to_check(app: App, queue: Queue) -> Plan:
    """The plan of what has no faults in an app that has some, to ask Spark about its queries; it cannot run."""
    return _plan(checkable(app, queue), queue)


def _plan(app: App, queue: Queue) -> Plan:
    declared = {topic.name: topic for topic in app.topics}
    queries = {query.name: query for query in queries_of(app)}
    writer = {query.writes: query for query in queries.values()}
    promised = promises(app)
    topics: dict[str, TopicPlan] = {}
    for name in [*declared, *(output for output in writer if output not in declared)]:
        topic = declared.get(name, Topic(name))
        partitions = topic.partitions
        if partitions is None:
            inputs = writer[name].reads if name in writer else ()
            partitions = max((declared[i].partitions or 1 for i in inputs if i in declared), default=1)
        topics[name] = TopicPlan(
            name=name,
            schema=parse_schema(topic.schema) if topic.schema else None,
            key=topic.key,
            event_time=topic.event_time,
            identity=topic.identity,
            partitions=partitions,
            guarantee=promised[name],
            policy=policy_of(promised[name], queue),
            kind=queue.kind,
            example=topic.example,
            format=RecordFormat(topic.format),
        )
    deliveries = {delivery.at: delivery for delivery in app.deliveries}
    doors = [Door(ingest.source.path.strip("/") or ingest.into, ingest.into) for ingest in app.ingests]
    return Plan(
        app=app.name,
        topics=topics,
        tables={table.name: plan_table(table) for table in app.tables},
        queries={name: _plan_query(query, topics) for name, query in queries.items()},
        doors={door.path: door for door in doors},
        deliveries=deliveries,
        paths=tuple(path_of(delivery, writer, topics) for delivery in deliveries.values()),
    )


def _plan_query(query: Query, topics: Mapping[str, TopicPlan]) -> QueryPlan:
    output = topics[query.writes]
    return QueryPlan(
        name=query.name,
        reads=query.reads,
        inputs=query.inputs,
        writes=query.writes,
        function=query.function,
        sql=query.sql,
        output=query.output,
        options=query.options,
        guarantee=output.guarantee,
        policy=output.policy.analyze,
    )

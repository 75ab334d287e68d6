"""A topic that exists keeps what others set, on our broker and on Apache Kafka."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from penstock import App, Guarantee
from penstock.client.topics import describe_topics, inspect_topics, look_at_queue, provide_topics
from penstock.errors import ConfigError
from penstock.kafka.target import KafkaTarget
from penstock.plan.planner import plan_app
from penstock.plan.topic_differences import Action
from penstock.plan.topics import Wanted, wanted_topics

DEADLINE_S = 30.0


@pytest.fixture
def admin(broker_address: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker_address})


def create(admin: AdminClient, name: str, settings: dict[str, str]) -> None:
    (made,) = admin.create_topics([NewTopic(name, 1, 1, config=settings)]).values()
    made.result(DEADLINE_S)


def setting(admin: AdminClient, topic: str, name: str) -> str | None:
    (answer,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return answer.result(DEADLINE_S)[name].value


def provide(address: str, topic: str, history: str = "7 days", adopt: tuple[str, ...] = ()) -> list[str]:
    """What `penstock run` does with the topics of an app; the sentences about its topic."""
    app = App("shop")
    app.topic(topic, schema="id STRING", partitions=1, guarantee=Guarantee(history=history))
    wanted = list(wanted_topics(plan_app(app, look_at_queue(KafkaTarget.parse(address)))))
    seen = [found.sentence for found in inspect_topics(KafkaTarget.parse(address), wanted, "shop", adopt)]
    done = [found.sentence for found in provide_topics(KafkaTarget.parse(address), wanted, "shop", adopt).differences]
    assert seen == done, "a dry run says what a run does"
    await_settings(address, wanted, adopt)
    return done


def await_settings(address: str, wanted: list[Wanted], adopt: tuple[str, ...]) -> None:
    """Return when the queue answers with the settings that it has accepted: a Kafka applies them a moment later."""
    deadline = time.monotonic() + DEADLINE_S
    while any(
        found.action is Action.SET for found in inspect_topics(KafkaTarget.parse(address), wanted, "shop", adopt)
    ):
        assert time.monotonic() < deadline, "the settings are not applied"
        time.sleep(0.05)


def test_retention_of_an_existing_topic_is_not_shortened(admin: AdminClient, broker_address: str, topic: str) -> None:
    """An app that wants a week meets a topic that keeps records for ever."""
    create(admin, topic, {"retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": broker_address})
    producer.produce(topic, b"old", timestamp=1_000)
    assert producer.flush(DEADLINE_S) == 0
    said = provide(broker_address, topic, adopt=(topic,))
    assert any("retention.ms is -1, and the app wants 604800000: kept" in line for line in said)
    assert setting(admin, topic, "retention.ms") == "-1"
    provide(broker_address, topic)
    assert setting(admin, topic, "retention.ms") == "-1", "the second start changes nothing either"


def test_a_topic_of_others_that_is_too_weak_is_refused_untouched(
    admin: AdminClient, broker_address: str, topic: str
) -> None:
    create(admin, topic, {"retention.ms": "60000"})
    with pytest.raises(ConfigError, match=f"Pass --adopt {topic}"):
        provide_topics_only(broker_address, topic)
    assert setting(admin, topic, "retention.ms") == "60000"
    provide(broker_address, topic, adopt=(topic,))
    assert setting(admin, topic, "retention.ms") == "604800000"


def provide_topics_only(address: str, topic: str) -> None:
    app = App("shop")
    app.topic(topic, schema="id STRING", partitions=1, guarantee=Guarantee(history="7 days"))
    provide_topics(
        KafkaTarget.parse(address), wanted_topics(plan_app(app, look_at_queue(KafkaTarget.parse(address)))), "shop"
    )


def test_a_topic_that_the_app_made_follows_its_guarantee(admin: AdminClient, broker_address: str, topic: str) -> None:
    assert provide(broker_address, topic, "90 days") == []
    assert setting(admin, topic, "retention.ms") == "7776000000"
    (said,) = provide(broker_address, topic, "7 days")
    assert said == (
        f"topic {topic}: retention.ms changes from 7776000000 to 604800000; the queue deletes the records beyond it"
    )
    assert setting(admin, topic, "retention.ms") == "604800000"


def test_a_topic_that_was_made_again_is_not_the_apps(admin: AdminClient, broker_address: str, topic: str) -> None:
    """Its name is the same, its id is another."""
    provide(broker_address, topic)
    before = describe_topics(admin, [topic])[topic].topic_id
    (gone,) = admin.delete_topics([topic]).values()
    gone.result(DEADLINE_S)
    create(admin, topic, {"retention.ms": "60000"})
    deadline = time.monotonic() + DEADLINE_S
    # Apache Kafka describes what its metadata cache holds, a moment behind what it has acknowledged.
    while (there := describe_topics(admin, [topic]).get(topic)) is None or there.topic_id == before:
        assert time.monotonic() < deadline
    with pytest.raises(ConfigError, match=f"Pass --adopt {topic}"):
        provide_topics_only(broker_address, topic)


def test_the_guarantee_line_says_what_one_copy_does_not_keep(
    broker_address: str, broker: str, topic: str, tmp_path: Path
) -> None:
    """On a cluster; of our own broker the first line of a run says that it is one machine."""
    script = tmp_path / "shop.py"
    script.write_text(f"from penstock import App\n\nshop = App('shop')\nshop.topic({topic!r}, schema='id STRING')\n")
    command = [sys.executable, "-m", "penstock", "run", str(script), "--queue", broker_address, "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True, cwd=tmp_path)
    said = "(one copy: a lost disk loses records)" in done.stdout
    assert said == (broker == "kafka"), done.stdout

"""A topic that is deleted under a running app: no part goes on as before, and only its guarantee makes it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from penstock.client.topics import describe_topics
from penstock.drills.app_process import AppProcess
from penstock.drills.recording_clients import read_topic
from tests.run.conftest import PLAIN
from tests.run.test_supervisor import post, wait_for

DEADLINE_S = 30.0
APP = (
    PLAIN.replace("from penstock import App", "from penstock import App, Guarantee").replace(
        'key="id"', 'key="id", guarantee=Guarantee(history="90 days")'
    )
    + """
@plain.query(reads=clicks, writes="kept", mode="realtime", every="5 seconds")
def keep(clicks): return clicks.select("id", "_event")
"""
)


@pytest.fixture
def app(tmp_path: Path) -> AppProcess:
    (tmp_path / "plain.py").write_text(APP)
    return AppProcess(str(tmp_path / "plain.py"), tmp_path)


def delete(queue: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": queue})
    admin.delete_topics([topic])[topic].result(DEADLINE_S)


def create(queue: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": queue})
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(DEADLINE_S)


def reports(app: AppProcess) -> dict[str, dict[str, Any]]:
    """The last report of each query."""
    records = [json.loads(record.value or b"{}") for record in read_topic(app.queue, "penstock.queries")]
    return {record["query"]: record for record in records}


def readiness(app: AppProcess) -> str:
    """The body of a red /ready."""
    with pytest.raises(HTTPError) as refused:
        urlopen(f"{app.url}/ready", timeout=DEADLINE_S)
    assert refused.value.code == 503
    return refused.value.read().decode()


def is_parked(app: AppProcess) -> bool:
    return bool(reports(app)["keep"]["state"] == "parked")


def test_a_deleted_topic_is_made_again_by_the_next_start_with_its_guarantee(app: AppProcess) -> None:
    with app:
        assert post(app, "a")
        wait_for(lambda: len(list(read_topic(app.queue, "kept"))) == 1, "the event is kept")
        wait_for(lambda: reports(app)["keep"]["positions"], "a checkpoint points into the topic")
        delete(app.queue, "clicks")
        wait_for(
            lambda: "the topic clicks was deleted while the app runs: start the app again" in app.said, "it is told"
        )
        wait_for(lambda: is_parked(app), "the query is parked")
        assert not post(app, "b")
        admin = AdminClient({"bootstrap.servers": app.queue})
        assert describe_topics(admin, ["clicks"]) == {}, "no client of ours made it again"
        assert app.stop() == 0
    with app:
        admin = AdminClient({"bootstrap.servers": app.queue})
        assert describe_topics(admin, ["clicks"])["clicks"].settings["retention.ms"] == str(90 * 86_400_000)
        wait_for(lambda: is_parked(app), "the query is parked")
        assert "was deleted and made again since the query's last start" in reports(app)["keep"]["reason"]
        assert post(app, "c")
        assert app.stop() == 0


def test_a_topic_that_another_client_made_again_is_refused(app: AppProcess) -> None:
    """An output, too: Spark's producer would make it again by itself."""
    with app:
        assert post(app, "a")
        wait_for(lambda: len(list(read_topic(app.queue, "kept"))) == 1, "the event is kept")
        for topic in ("clicks", "kept"):
            delete(app.queue, topic)
            create(app.queue, topic)
        for topic in ("clicks", "kept"):
            told = f"the topic {topic} was deleted and made again by another client"
            wait_for(lambda told=told: told in app.said, "it is told")
        wait_for(lambda: is_parked(app), "the query is parked")
        assert not post(app, "b")
        assert "made again by another client" in readiness(app)
        assert list(read_topic(app.queue, "clicks")) == []
        assert app.stop() == 0

"""CloudEvents 1.0 sent with the `cloudevents` SDK, and read back with it from the queue."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.bindings.http import HTTPMessage, to_binary_event, to_structured_event
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka_event
from cloudevents.core.v1.event import CloudEvent

from penstock.client.record import Record
from tests.edge.edge_stage import Answer, EdgeStage

NOTE = {"text": "schön", "stars": 5}
WHEN = datetime(2026, 11, 16, 3, 15, tzinfo=UTC)


def cloud_event(id: str, **more: Any) -> CloudEvent:
    attributes = {
        "id": id, "type": "shop.note", "source": "/till/7", "subject": "€ 5 %", "time": WHEN,
        "datacontenttype": "application/json", **more,
    }  # fmt: skip
    return CloudEvent(attributes=attributes, data=NOTE)


def send(shop: EdgeStage, message: HTTPMessage, path: str = "/ingest/shop/notes") -> Answer:
    return shop.ask("POST", path, message.body, message.headers)


def stored(shop: EdgeStage, id: str) -> Record:
    (found,) = [record for record in shop.stored("notes") if record.header("penstock-id") == id.encode()]
    return found


def assert_kept(record: Record, sent: CloudEvent) -> None:
    """Kafka's binding of CloudEvents, in binary mode, gives the event back with all of its attributes."""
    headers = {name: value for name, value in record.headers if not name.startswith("penstock-")}
    kept = from_kafka_event(KafkaMessage(headers=headers, key=record.key, value=record.value or b""))
    assert kept.get_attributes() == sent.get_attributes()
    assert json.loads(record.value or b"") == NOTE


def test_binary_mode_keeps_id_and_attributes(shop: EdgeStage) -> None:
    sent = cloud_event("binary-1", shopid="12")
    assert send(shop, to_binary_event(sent)).json == {"ids": ["binary-1"]}
    assert_kept(stored(shop, "binary-1"), sent)


def test_structured_mode_keeps_id_and_attributes(shop: EdgeStage) -> None:
    sent = cloud_event("structured-1", shopid="12")
    assert send(shop, to_structured_event(sent)).json == {"ids": ["structured-1"]}
    assert_kept(stored(shop, "structured-1"), sent)


def test_a_batch_keeps_id_and_attributes_of_each(shop: EdgeStage) -> None:
    events = [cloud_event(f"batch-{number}") for number in range(3)]
    body = b"[" + b",".join(to_structured_event(event).body for event in events) + b"]"
    answer = shop.post("/ingest/shop/notes", body, Content_Type="application/cloudevents-batch+json")
    assert answer.json == {"ids": ["batch-0", "batch-1", "batch-2"]}
    for event in events:
        assert_kept(stored(shop, event.get_id()), event)


def test_data_may_come_as_base64_and_its_type_may_be_unsaid(shop: EdgeStage) -> None:
    body = b'{"specversion":"1.0","id":"base-1","source":"s","type":"t","data_base64":"eyJ0ZXh0IjoiaGkifQ=="}'
    answer = shop.post("/ingest/shop/notes", body, Content_Type="application/cloudevents+json")
    assert answer.json == {"ids": ["base-1"]}
    assert stored(shop, "base-1").value == b'{"text":"hi"}'


def test_the_identity_of_the_topic_is_stronger_than_the_id_of_the_cloud_event(shop: EdgeStage) -> None:
    event = CloudEvent(attributes={"id": "theirs", "type": "t", "source": "s"}, data={"id": "ours-1"})
    assert send(shop, to_structured_event(event), "/ingest/purchases").json == {"ids": ["ours-1"]}


GOOD = {"specversion": "1.0", "id": "bad-1", "source": "s", "type": "t", "data": {"text": "x"}}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"id": None}, "attribute id is missing"),
        ({"id": ""}, "attribute id is missing"),
        ({"source": None}, "attribute source is missing"),
        ({"type": 7}, "attribute type is missing"),
        ({"specversion": "0.3"}, "specversion"),
        ({"datacontenttype": "text/xml"}, "datacontenttype"),
        ({"data": {"stars": 1}}, "field text"),
        ({"data": None, "data_base64": "*"}, "both"),
        ({"Upper": "x"}, "lower-case"),
        ({"nested": {"a": 1}}, "attribute nested"),
        ({"id": "a\nb"}, "attribute id"),
    ],
)
def test_what_is_no_cloud_event_is_refused_by_the_name_of_the_attribute(
    shop: EdgeStage, change: dict[str, Any], says: str
) -> None:
    """In structured mode, and in a batch with the number of the event; nothing is stored."""
    event = {**GOOD, **change}
    event = {name: value for name, value in event.items() if value is not None or name == "data"}
    one = shop.post("/ingest/shop/notes", event, Content_Type="application/cloudevents+json")
    assert one.status == 400
    assert says in one.json["error"]
    two = shop.post("/ingest/shop/notes", [GOOD, event], Content_Type="application/cloudevents-batch+json")
    assert (two.status, two.json["event"]) == (400, 1)
    assert not [r for r in shop.stored("notes") if r.header("penstock-id") == b"bad-1"]


def test_binary_mode_without_its_headers_is_refused(shop: EdgeStage) -> None:
    answer = shop.post("/ingest/shop/notes", {"text": "x"}, ce_specversion="1.0", ce_id="x")
    assert (answer.status, answer.json["field"]) == (400, "source")

"""Kill -9, a queue that hangs or is away: every 202 is in the queue, memory is bounded, and it goes on by itself."""

from __future__ import annotations

import concurrent.futures
import http.client
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from tests.edge.edge_stage import Answer, EdgeStage

MIB = 1024 * 1024


@pytest.fixture
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EdgeStage]:
    built = EdgeStage(tmp_path_factory.mktemp("faults"), inflight_bytes_max=MIB, store_deadline_ms=3_000)
    yield built
    assert "Traceback" not in built.said, built.said
    built.close()


@pytest.fixture
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EdgeStage]:
    built = EdgeStage(tmp_path_factory.mktemp("patient"))
    yield built
    built.close()


def stored_ids(stage: EdgeStage) -> list[str]:
    return [(record.header("penstock-id") or b"").decode() for record in stage.stored("purchases")]


class Sender:
    """Sends one event after the other and remembers which got 202."""

    def __init__(self, stage: EdgeStage, name: str) -> None:
        self.accepted: list[str] = []
        self._stage = stage
        self._name = name
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._ending.is_set():
            id = f"{self._name}-{number}"
            number += 1
            try:
                if self._stage.post("/ingest/purchases", {"id": id, "card": id}).status == 202:
                    self.accepted.append(id)
            except (OSError, http.client.HTTPException):
                continue  # the edge is away: not accepted, or not known

    def end(self) -> list[str]:
        self._ending.set()
        self._thread.join()
        return self.accepted


def test_every_202_is_in_the_queue_though_the_edge_is_killed_again_and_again(stage: EdgeStage) -> None:
    """202 is said after the acknowledgement only, so that a kill -9 at any moment takes nothing back."""
    senders = [Sender(stage, f"s{number}") for number in range(8)]
    for _ in range(5):
        heard = sum(len(sender.accepted) for sender in senders)
        deadline = time.monotonic() + 60
        while sum(len(sender.accepted) for sender in senders) < heard + 100:
            assert time.monotonic() < deadline
            time.sleep(0.001)
        stage.end_edge(signal.SIGKILL)
        stage.start_edge()
    accepted = [id for sender in senders for id in sender.end()]
    assert len(accepted) >= 500
    assert set(accepted) <= set(stored_ids(stage))


def test_a_queue_that_hangs_is_answered_with_503_within_the_deadline_and_it_recovers(stage: EdgeStage) -> None:
    """Not more than the bound is kept; the rest hears 503 with Retry-After at once; nothing hangs, nothing is lost."""
    assert stage.post("/ingest/purchases", {"id": "warm"}).status == 202
    before = stage.resident_bytes
    stage.broker.pause()
    try:
        pad = "x" * 100_000

        def send(number: int) -> Answer:
            return stage.post("/ingest/purchases", {"id": f"stuck-{number}", "pad": pad})

        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            answers = list(pool.map(send, range(200)))
        assert {answer.status for answer in answers} == {503}
        assert all(answer.headers["retry-after"] == "1" for answer in answers)
        assert time.monotonic() - began < 60
        full = [answer for answer in answers if "too many events" in answer.json["error"]]
        late = [answer for answer in answers if "unknown" in answer.json]
        assert full
        assert late
        assert len(full) + len(late) == 200
        assert stage.get("/ready").status == 503
        assert stage.get("/health").status == 200
        assert stage.resident_bytes - before < 30 * MIB
        assert stage.metric("inflight_bytes") == 0
    finally:
        stage.broker.wake()
    deadline = time.monotonic() + 60
    while stage.post("/ingest/purchases", {"id": "again"}).status != 202:
        assert time.monotonic() < deadline
    assert "again" in stored_ids(stage)
    while stage.get("/ready").status != 200:
        assert time.monotonic() < deadline


def test_events_of_senders_that_wait_for_results_have_room_until_they_are_stored_and_no_longer(
    stage: EdgeStage,
) -> None:
    """A queue that hangs fills the bound as without ?wait=; a result that does not come holds nothing."""
    way = "/ingest/purchases?wait=decide&timeout_ms="
    assert stage.post(f"{way}1", {"id": "warm"}).status == 202
    body = {"id": "waits", "pad": "x" * 100_000}
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        stage.broker.pause()
        try:
            answers = list(pool.map(lambda _: stage.post(f"{way}1", body), range(40)))
        finally:
            stage.broker.wake()
        assert {answer.status for answer in answers} == {503}
        assert [answer for answer in answers if "too many events" in answer.json["error"]]
        deadline = time.monotonic() + 60
        while stage.post("/ingest/purchases", {"id": "again"}).status != 202:
            assert time.monotonic() < deadline
        waiting = [pool.submit(stage.post, f"{way}20000", body | {"id": f"waits-{n}"}) for n in range(5)]
        while stage.metric("waiting") < 5 or stage.metric("inflight_bytes"):
            assert time.monotonic() < deadline
        assert stage.post("/ingest/purchases", {"id": "big", "pad": "x" * 800_000}).status == 202
        assert {answer.result().status for answer in waiting} == {202}


def test_where_events_may_be_dropped_overload_is_429(stage: EdgeStage) -> None:
    stage.post("/ingest/fleeting", {"n": 0})
    stage.broker.pause()
    try:
        with concurrent.futures.ThreadPoolExecutor(40) as pool:
            body = b'{"n":1,"pad":"%s"}' % (b"x" * 100_000)
            answers = list(pool.map(lambda _: stage.post("/ingest/fleeting", body), range(40)))
        assert {answer.status for answer in answers} == {429, 503}
    finally:
        stage.broker.wake()


def test_a_stream_of_lines_is_slowed_down_by_a_queue_that_hangs_and_told_the_truth(stage: EdgeStage) -> None:
    """Memory stays bounded while the sender pushes; lines that were not acknowledged are counted, not promised."""
    stage.post("/ingest/purchases", {"id": "warm"})
    before = stage.resident_bytes
    stage.broker.pause()
    connection = http.client.HTTPConnection("127.0.0.1", stage.port, timeout=60)
    try:
        line = b'{"id":"nd-%07d","pad":"' + b"x" * 1000 + b'"}\n'
        body = b"".join(line % number for number in range(20_000))
        connection.request("POST", "/ingest/purchases", body, {"Content-Type": "application/x-ndjson"})
        answer = connection.getresponse()
        said = answer.read()
        assert answer.status == 503, said
        assert b'"accepted":0,"refused":0,"unstored":20000' in said
        assert stage.resident_bytes - before < 40 * MIB
    finally:
        connection.close()
        stage.broker.wake()


def test_a_restart_of_the_queue_is_ridden_out(patient: EdgeStage) -> None:
    """Requests that come while the broker is away are answered with 202 once it is back."""
    patient.post("/ingest/purchases", {"id": "warm"})
    patient.broker.kill()
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(patient.post, "/ingest/purchases", {"id": f"out-{number}"}) for number in range(4)]
        patient.broker.start()
        answers = [answer.result() for answer in waiting]
    accepted = [answer.json["ids"][0] for answer in answers if answer.status == 202]
    assert accepted, answers
    assert set(accepted) <= set(stored_ids(patient))


def test_a_clean_stop_ends_with_status_0_and_answers_what_was_accepted(stage: EdgeStage) -> None:
    senders = [Sender(stage, f"t{number}") for number in range(4)]
    deadline = time.monotonic() + 60
    while sum(len(sender.accepted) for sender in senders) < 50:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    assert stage.end_edge(signal.SIGTERM) == 0
    accepted = [id for sender in senders for id in sender.end()]
    assert set(accepted) <= set(stored_ids(stage))


def test_an_edge_without_a_queue_serves_and_says_that_it_is_not_ready(stage: EdgeStage) -> None:
    stage.end_edge()
    stage.broker.kill()
    stage.start_edge()
    assert stage.get("/health").status == 200
    assert stage.get("/ready").status == 503
    assert stage.post("/ingest/purchases", {"id": "early"}).status == 503
    stage.broker.start()
    deadline = time.monotonic() + 60
    while stage.post("/ingest/purchases", {"id": "then"}).status != 202:
        assert time.monotonic() < deadline

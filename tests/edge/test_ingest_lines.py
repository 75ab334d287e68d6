"""NDJSON by a real edge: streamed, bad lines named, the good ones stored."""

from __future__ import annotations

import http.client
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.edge.edge_stage import DEADLINE_S, EdgeStage

NDJSON = "application/x-ndjson"


def stored_ids(shop: EdgeStage) -> set[str]:
    return {(record.header("penstock-id") or b"").decode() for record in shop.stored("purchases")}


def test_a_file_sent_by_curl_is_stored_line_by_line(
    shop: EdgeStage, need_tool: Callable[[str], str], tmp_path: Path
) -> None:
    """More lines than a body that is taken as a whole may hold, with and without a last newline."""
    file = tmp_path / "events.ndjson"
    file.write_text("\n".join(f'{{"id":"file-{number}","card":"{number % 7}"}}' for number in range(30_000)))
    command = [need_tool("curl"), "-sS", "-T", str(file), "-X", "POST", "-H", f"Content-Type: {NDJSON}"]
    said = subprocess.run([*command, f"{shop.url}/ingest/purchases"], capture_output=True, check=True, timeout=120)
    assert b'"accepted":30000,"refused":0,"unstored":0' in said.stdout
    assert {f"file-{number}" for number in range(30_000)} <= stored_ids(shop)


def test_a_bad_line_is_named_and_stops_no_other(shop: EdgeStage) -> None:
    """207: some stored, some not. Blank lines count as lines and are no events."""
    body = b'{"id":"l1"}\r\n\n{"id":"l3","amount":"x"}\nnonsense\n{"id":"\xff"}\n{"id":"l6"}'
    answer = shop.post("/ingest/purchases", body, Content_Type=NDJSON)
    assert answer.status == 207
    assert (answer.json["accepted"], answer.json["refused"]) == (2, 3)
    assert [fault["line"] for fault in answer.json["faults"]] == [3, 4, 5]
    assert "field amount" in answer.json["faults"][0]["error"]
    assert {"l1", "l6"} <= stored_ids(shop)


def test_only_bad_lines_are_a_bad_request_and_few_of_them_are_told_one_by_one(shop: EdgeStage) -> None:
    answer = shop.post("/ingest/purchases", b"nonsense\n" * 1_000, Content_Type=NDJSON)
    assert answer.status == 400
    assert answer.json["refused"] == 1_000
    assert len(answer.json["faults"]) + answer.json["faults_left_off"] == 1_000
    assert len(answer.json["faults"]) <= 100
    assert shop.post("/ingest/purchases", b"\n\n", Content_Type=NDJSON).status == 400


def test_a_line_too_long_is_skipped_without_being_kept(shop: EdgeStage) -> None:
    """50 MB in one line leave no trace in memory; the lines around it are stored."""
    before = shop.resident_bytes

    def body() -> Iterator[bytes]:
        yield b'{"id":"before"}\n{"id":"'
        for _ in range(50):
            yield b"x" * 1024 * 1024
        yield b'"}\n{"id":"after"}\n'

    connection = http.client.HTTPConnection("127.0.0.1", shop.port, timeout=60)
    connection.request("POST", "/ingest/purchases", body(), {"Content-Type": NDJSON}, encode_chunked=True)
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    assert answer.status == 207, said
    assert b'"accepted":2,"refused":1' in said
    assert b'"line":2' in said
    assert {"before", "after"} <= stored_ids(shop)
    assert shop.resident_bytes - before < 30 * 1024 * 1024


def test_lines_are_stored_while_the_body_is_still_on_its_way(shop: EdgeStage) -> None:
    """A stream is not kept until its end: the first line is in the queue before the last is sent."""
    connection = http.client.HTTPConnection("127.0.0.1", shop.port, timeout=60)
    connection.putrequest("POST", "/ingest/purchases")
    connection.putheader("Content-Type", NDJSON)
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    connection.send(b'10\r\n{"id":"early1"}\n\r\n'.replace(b"10", b"%x" % len(b'{"id":"early1"}\n')))
    deadline = time.monotonic() + DEADLINE_S
    while "early1" not in stored_ids(shop):
        assert time.monotonic() < deadline
    last = b'{"id":"late1"}\n'
    connection.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(last), last))
    answer = connection.getresponse()
    assert answer.status == 202, answer.read()
    connection.close()
    assert "late1" in stored_ids(shop)

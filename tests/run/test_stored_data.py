"""What an earlier commit stored is read by this one: data, checkpoints, settings and resume tokens.

tools/data_fixture.py made the archives. The tests look only at what clients get and at files, so that modules may move.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.config.addresses import parse_address
from tools.data_fixture import (
    BROKERS,
    archives,
    ask,
    groups,
    live,
    look,
    member_of,
    post,
    read,
    running_app,
    running_broker,
    send,
    settings,
    take,
    topics,
    transactor,
    unpack,
    values,
    wait_for,
)

FENCED = {47, 90}  # INVALID_PRODUCER_EPOCH, PRODUCER_FENCED


class Stored(NamedTuple):
    """A server that runs on a copy of the fixture, and what its clients saw when that was made."""

    address: str
    expected: dict[str, Any]
    folder: Path
    http: str = ""


def expected(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return found


@pytest.fixture(scope="module", params=archives(), ids=lambda path: path.name.split(".")[0])
def archive(request: pytest.FixtureRequest) -> Path:
    """Each fixture that was ever made."""
    path: Path = request.param
    return path


# A broker's data.


@pytest.fixture(params=BROKERS)
def broker(request: pytest.FixtureRequest, archive: Path, tmp_path: Path) -> Iterator[Stored]:
    """A broker on data whose broker was stopped, or killed with SIGKILL."""
    folder = unpack(archive, tmp_path) / request.param
    with running_broker(folder) as (address, running):
        yield Stored(address, expected(folder), folder)
        assert running.stop() == 0, running.said


@pytest.mark.timeout(600)
def test_stored_records_offsets_and_settings_are_served_as_before(broker: Stored) -> None:
    """Every record at its offset with the same bytes; an aborted or open transaction is not read as committed."""
    found = look(broker.address)
    for part in ("topics", "groups", "records", "committed"):
        assert found[part] == broker.expected[part], part


def test_a_stored_producer_is_recognised(broker: Stored) -> None:
    """A batch that is sent again gets the offset of the first time, and is not stored twice."""
    repeat = broker.expected["repeat"]
    assert ask(broker.address, bytes.fromhex(repeat["request"])).hex() == repeat["answer"]
    assert read(broker.address, "repeated") == broker.expected["records"]["repeated"]


def test_a_stored_open_transaction_is_committed_by_its_producer(broker: Stored) -> None:
    """With its records and its position."""
    assert end_code(broker, "till-open") == 0
    assert read(broker.address, "open", committed=True) == broker.expected["records"]["open"]
    assert groups(broker.address)["pending"] == {"stamped-0": [2, None]}


def test_a_stored_open_transaction_is_aborted_by_the_next_producer(broker: Stored) -> None:
    """The producer that began it is fenced."""
    transactor(broker.address, "till-fenced")
    assert end_code(broker, "till-fenced") in FENCED
    stored = broker.expected["records"]["fenced"]["0"]
    kept = [row for row in stored if "in the transaction" not in row[4]]
    assert len(kept) == len(stored) - 2
    assert read(broker.address, "fenced", committed=True) == {"0": kept}


def end_code(broker: Stored, transactional_id: str) -> int:
    """The error code for the stored request of the first producer to commit."""
    answer = ask(broker.address, bytes.fromhex(broker.expected["ends"][transactional_id]))
    _, _, code = struct.unpack(">iih", answer)
    return int(code)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_stored_group_goes_on_behind_its_position(broker: Stored, protocol: str) -> None:
    with closing(member_of(broker.address, f"desk-{protocol}", protocol)) as consumer:
        assert take(consumer, 1) == 2


# An app's data.


@pytest.fixture(scope="module")
def app(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    """The app on its stored data, at another place: killed after a commit of `totals` of which Spark did not hear."""
    folder = unpack(archive, tmp_path_factory.mktemp("stored")) / "app"
    commits = folder / "data" / "analyze" / "checkpoints" / "totals" / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    assert last > 0
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink()
    with running_app(folder) as (queue, http, running):
        yield Stored(queue, expected(folder), folder, http)
        assert running.stop() == 0, running.said


def added(app: Stored, topic: str, count: int) -> list[Any]:
    """The values behind the stored records, once there are `count`; the stored ones are as they were."""
    stored = app.expected["committed"][topic]
    size = sum(map(len, stored.values()))

    def found() -> Any:
        records = read(app.address, topic, committed=True)
        return records if sum(map(len, records.values())) >= size + count else None

    records = wait_for(found, f"{count} more records in {topic}")
    assert {part: rows[: len(stored[part])] for part, rows in records.items()} == stored
    new = values({part: rows[len(stored[part]) :] for part, rows in records.items()})
    return sorted(new, key=json.dumps)


@pytest.mark.timeout(600)
def test_queries_go_on_from_their_stored_checkpoints(app: Stored) -> None:
    """A count goes on from its state, and nothing is processed again: one new event of each partition, one result."""
    post(app.http, "/ingest/clicks", [{"id": "new-a", "card": "a", "n": 100}, {"id": "new-f", "card": "f", "n": 5}])
    assert added(app, "seen", 2) == [{"card": "a", "clicks": 4}, {"card": "f", "clicks": 3}]
    assert added(app, "large", 1) == [{"id": "new-a", "card": "a", "n": 100}]
    send(app.address, "clicks", [{"key": "a", "value": "7", "partition": 0}])
    assert added(app, "clicks.dead", 1) == [7]


@pytest.mark.timeout(600)
def test_an_exactly_once_query_goes_on_behind_its_stored_batch(app: Stored) -> None:
    """The batch that was committed in the queue, and not in Spark, is not written again."""
    post(app.http, "/ingest/payments", [{"id": "new-a", "card": "a", "n": 100}])
    assert added(app, "totals", 1) == [{"card": "a", "total": 108, "payments": 4}]
    batches = [token["batch"] for token in values(read(app.address, "penstock.fixture.totals.batches", committed=True))]
    assert batches == list(range(len(batches)))


def test_a_stored_resume_token_goes_on_behind_its_message(app: Stored) -> None:
    end = ",".join(f"{part}:{len(rows)}" for part, rows in app.expected["records"]["seen"].items())
    messages = [message for _, message in live(app.http, f"after={app.expected['token']}&until={end}")]
    assert messages == app.expected["after_token"]


def test_a_start_finds_its_topics_as_it_made_them(app: Stored) -> None:
    """It makes none but that of orders, which is newer; it changes no setting, and writes nothing into the registry."""
    found = topics(app.address)
    del found["penstock.fixture.orders"]
    assert found == app.expected["topics"]
    assert read(app.address, "penstock.topics") == app.expected["records"]["penstock.topics"]


# Settings.


def test_stored_settings_mean_the_same(archive: Path, tmp_path: Path) -> None:
    """Each setting of penstock.toml has its value; a default may have changed."""
    folder = unpack(archive, tmp_path) / "app"
    now = settings(folder)
    for table, before in expected(folder)["settings"].items():
        given = {name: one for name, one in before.items() if one["origin"] != "default"}
        assert given
        assert {name: now[table][name] for name in given} == given


def test_the_run_spec_keeps_the_stored_names(archive: Path, tmp_path: Path, app: Stored) -> None:
    """What a supervisor writes for its children has the same names and settings as before.

    Each start writes it again, so its form may change: `queue` was HOST:PORT in the first fixture.
    """
    place = Path("data", "run", "spec.json")
    before = json.loads((unpack(archive, tmp_path) / "app" / place).read_text())
    now = json.loads((app.folder / place).read_text())
    queue = {"addresses": [list(parse_address(app.address))]}
    own = {"app": str(app.folder / "fixture.py"), "data": str(app.folder / "data"), "queue": queue}
    wanted = before | own | {"edge": before["edge"] | {"listen": app.http}}
    assert overlap(now, wanted) == wanted


def overlap(now: Any, before: Any) -> Any:
    """`now` without the names that `before` does not have."""
    if isinstance(now, dict) and isinstance(before, dict):
        return {name: overlap(value, before[name]) for name, value in now.items() if name in before}
    return now

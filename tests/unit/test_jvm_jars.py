"""Jars are what the lock file says, or they are not used."""

from __future__ import annotations

import hashlib
import io
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock

import pytest

from penstock.errors import ConfigError
from penstock.jvm.jars import Jar, provide_jars, read_lock
from penstock.process.cache import cache_folder
from proof.oracle.tools import KAFKA_LOCK


class Registry:
    """A registry that counts what was asked of it, and can lie or be away."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.lies: set[str] = set()
        self.failures = 0
        self._lock = Lock()

    def content(self, artifact: str) -> bytes:
        return f"the jar {artifact}".encode()

    def fetch(self, jar: Jar, folder: Path) -> Path:
        with self._lock:
            self.asked.append(jar.artifact)
            if self.failures:
                self.failures -= 1
                raise OSError("network is down")
        path = folder / jar.group / f"{jar.artifact}.jar"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"a lie" if jar.artifact in self.lies else self.content(jar.artifact))
        return path


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
def lock(tmp_path: Path, registry: Registry) -> Path:
    path = tmp_path / "some.jars"
    lines = [f"org.x:{name}:1.0 {hashlib.sha256(registry.content(name)).hexdigest()}\n" for name in "abc"]
    path.write_text("".join(lines))
    return path


def away(jar: Jar, folder: Path) -> Path:
    raise AssertionError(f"{jar} was fetched")


def test_kafkas_lock_file_pins_every_jar_once() -> None:
    """Kafka's broker, its tools and a logger are there; sorted, so that a diff shows what changed."""
    jars = read_lock(KAFKA_LOCK)
    names = [f"{jar.group}:{jar.artifact}" for jar in jars]
    assert len(set(names)) == len(names)
    assert KAFKA_LOCK.read_text().splitlines() == sorted(KAFKA_LOCK.read_text().splitlines())
    kafka = {jar.version for jar in jars if jar.group == "org.apache.kafka"}
    assert kafka == {"4.3.1"}
    assert {"org.apache.kafka:kafka_2.13", "org.apache.kafka:kafka-tools"} <= set(names)


def test_every_bad_line_of_a_lock_file_is_named(tmp_path: Path) -> None:
    """One look at the message is enough to mend the file."""
    path = tmp_path / "bad.jars"
    path.write_text(f"org.x:a:1.0 {'0' * 64}\norg.x:a {'0' * 64}\norg.x:../../a:1 00\n")
    with pytest.raises(ConfigError) as caught:
        read_lock(path)
    assert [fault.split(" is ")[0] for fault in caught.value.faults] == ["bad.jars line 2", "bad.jars line 3"]


def test_jars_are_fetched_once_and_used_offline(tmp_path: Path, lock: Path, registry: Registry) -> None:
    """The second time nothing is asked of the network."""
    first = provide_jars(lock, tmp_path / "cache", fetch=registry.fetch)
    assert [path.read_bytes() for path in first] == [registry.content(name) for name in "abc"]
    assert provide_jars(lock, tmp_path / "cache", fetch=away) == first
    assert not list((tmp_path / "cache").rglob("partial"))


def test_a_jar_with_another_hash_is_refused_by_name(tmp_path: Path, lock: Path, registry: Registry) -> None:
    """What is not the pinned file never reaches the class path; what was right is kept."""
    registry.lies = {"b"}
    with pytest.raises(ConfigError, match=r"org\.x:b:1\.0 does not have the SHA-256"):
        provide_jars(lock, tmp_path / "cache", fetch=registry.fetch)
    assert not list((tmp_path / "cache").rglob("b-1.0.jar"))
    registry.lies = set()
    provide_jars(lock, tmp_path / "cache", fetch=registry.fetch)


def test_a_jar_damaged_in_the_cache_is_fetched_again(tmp_path: Path, lock: Path, registry: Registry) -> None:
    """The cache is believed only as far as the hash goes."""
    paths = provide_jars(lock, tmp_path / "cache", fetch=registry.fetch)
    paths[1].write_bytes(b"torn")
    registry.asked.clear()
    provide_jars(lock, tmp_path / "cache", fetch=registry.fetch)
    assert registry.asked == ["b"]
    assert paths[1].read_bytes() == registry.content("b")


def test_a_network_that_fails_is_tried_again_and_then_named(tmp_path: Path, lock: Path, registry: Registry) -> None:
    """A hiccup is survived; an outage is one sentence."""
    registry.failures = 2
    provide_jars(lock, tmp_path / "one", fetch=registry.fetch)
    registry.failures = 1_000
    with pytest.raises(ConfigError, match=r"could not be fetched \(network is down\)"):
        provide_jars(lock, tmp_path / "two", fetch=registry.fetch)


def test_two_that_fetch_at_once_fetch_once(tmp_path: Path, lock: Path, registry: Registry) -> None:
    """The second waits for the first and finds everything there."""
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(provide_jars, lock, tmp_path / "cache", fetch=registry.fetch) for _ in range(2)]
        assert runs[0].result() == runs[1].result()
    assert sorted(registry.asked) == ["a", "b", "c"]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_only_on_a_terminal(
    tmp_path: Path,
    lock: Path,
    registry: Registry,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A log gets one line; a person sees it move; with nothing to fetch both get silence."""
    provide_jars(lock, tmp_path / "one", fetch=registry.fetch)
    assert capsys.readouterr().err == f"fetching 3 jars into {tmp_path / 'one' / 'jars'}\n"
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    provide_jars(lock, tmp_path / "two", fetch=registry.fetch)
    assert terminal.getvalue().endswith("3/3\n")
    before = terminal.getvalue()
    provide_jars(lock, tmp_path / "two", fetch=registry.fetch)
    assert terminal.getvalue() == before


def test_the_cache_is_where_the_user_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own variable first, then the desktop's, then the custom."""
    assert cache_folder({"PENSTOCK_CACHE": "/c", "XDG_CACHE_HOME": "/x"}) == Path("/c")
    assert cache_folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/penstock")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder({}) == Path("/home/someone/.cache/penstock")


def test_the_lock_is_let_go_when_a_fetch_fails(tmp_path: Path, lock: Path, registry: Registry) -> None:
    """A failed run does not block the next one, and leaves nothing half-done behind."""
    registry.failures = 1_000
    with pytest.raises(ConfigError):
        provide_jars(lock, tmp_path / "cache", fetch=registry.fetch)
    registry.failures = 0
    assert len(provide_jars(lock, tmp_path / "cache", fetch=registry.fetch)) == 3
    assert not list((tmp_path / "cache").rglob("partial"))

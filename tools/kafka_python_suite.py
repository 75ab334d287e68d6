"""kafka-python's own integration tests, from its sdist, against a broker that runs already.

python -m tools.kafka_python_suite HOST:PORT
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from penstock.process.cache import cache_folder

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "clients.md"
BEGIN, END = "<!-- made by tools/kafka_python_suite.py -->\n", "<!-- end of it -->\n"
# What its tests take for granted of the broker they would start themselves.
SETTINGS = {"default_partitions": 4, "group_session_ms_min": 1_000}
CANNOT_PASS = {
    "test_create_describe_delete_acls": "wants an authorizer: nobody is asked who he is yet",
    "test_create_partitions": "puts partitions on broker 0: this one is 1",
    "test_legacy_kafka_client_ssl": "starts a Kafka with TLS itself",
    "test_ssl_handshake": "starts a Kafka with TLS itself",
}
_DEADLINE_S = 240.0
# The sdist leaves this module out; with an outside broker there is nothing for it to start or stop.
_SERVICE = """
class SpawnedService:
    pass


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def dump_logs(self):
        pass
"""


class Outcome(NamedTuple):
    """Names of tests by what became of them, and what pytest said."""

    passed: set[str]
    failed: set[str]
    said: str


def unpack(folder: Path) -> Path:
    """The tests of the installed version in `folder`; its sdist is fetched once, by the hashes of the lock file."""
    name = f"kafka_python-{version('kafka-python')}"
    cache = cache_folder(os.environ) / "sdists"
    archive = cache / f"{name}.tar.gz"
    if not archive.exists():
        lock = (ROOT / "requirements.lock").read_text()
        found = re.search(rf"^kafka-python=={re.escape(version('kafka-python'))} (.*(?:\n    .*)*)", lock, re.MULTILINE)
        if found is None:
            raise LookupError("requirements.lock names another version of kafka-python: make setup")
        wanted = folder / "requirements.txt"
        wanted.write_text(found[0])
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        cache.mkdir(parents=True, exist_ok=True)
        subprocess.run([*pip, "--require-hashes", "-r", str(wanted), "-d", str(cache)], check=True, timeout=_DEADLINE_S)
    with tarfile.open(archive) as sdist:
        sdist.extractall(folder, [each for each in sdist if each.name.startswith(f"{name}/test/")], filter="data")
    tests = folder / name
    (tests / "test" / "__init__.py").touch()  # else Python's own package of this name is found
    (tests / "test" / "service.py").write_text(_SERVICE)
    (tests / "pytest.ini").write_text("[pytest]\n")
    return tests


def run(tests: Path, address: str, *names: str) -> Outcome:
    """Run all tests, or those named."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environ |= {"KAFKA_URI": f"kafka://{address}", "KAFKA_VERSION": "4.3.0", "KAFKA_ROOT": str(tests)}
    report = tests / "report.xml"
    flags = ["-q", "--tb=native", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout=60", f"--junitxml={report}"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *flags,
        *(["-k", " or ".join(names)] if names else []),
        "test/integration",
    ]
    done = subprocess.run(
        command, cwd=tests, env=environ, capture_output=True, text=True, timeout=_DEADLINE_S, check=False
    )
    passed, failed = set(), set()
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {part.tag for part in case}
        if kinds & {"failure", "error"}:
            failed.add(case.attrib["name"])
        elif "skipped" not in kinds:
            passed.add(case.attrib["name"])
    return Outcome(passed, failed, done.stdout)


def page(text: str) -> str:
    """The page with its table made anew."""
    lines = [
        "| cannot pass | because it |",
        "|---|---|",
        *(f"| `{name}` | {why} |" for name, why in CANNOT_PASS.items()),
    ]
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n".join(lines) + "\n" + END + rest.partition(END)[2]


def main() -> int:
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
    with tempfile.TemporaryDirectory() as folder:
        outcome = run(unpack(Path(folder)), sys.argv[1])
    print(outcome.said)
    return int(outcome.failed != set(CANNOT_PASS))


if __name__ == "__main__":
    sys.exit(main())

"""Writes the table of docs/clients.md from what the last test run saw: python tools/client_table.py."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "clients.md"
REPORT = "penstock/clients"  # a key of pytest's cache
CACHED = ROOT / ".pytest_cache" / "v" / REPORT
BEGIN, END = "<!-- made by make clients -->\n", "<!-- end -->\n"
_ROW = re.compile(r"\| .* \| `(\S+) (\S+)` \| (.*) \| (.*) \|")
_KNOWN_AS = {
    "aiokafka": "aiokafka",
    "apache-kafka-java": "Java: Kafka's tools and judges, Spark's connector, Quarkus's console",
    "confluent-kafka-python": "confluent-kafka, and with it `penstock`",
    "kafka-python": "kafka-python",
    "librdkafka": "kcat, as the distribution packages it",
}
_OF_THE_SYSTEM = {"librdkafka"}
# Of each file of tests that ran whole and passed: its clients by name and version, and whether they met both brokers.
Report = dict[str, list[tuple[str, str, bool]]]


class Client(NamedTuple):
    """A client as it told our broker."""

    name: str
    version: str


class Claim(NamedTuple):
    """A client passes a file of tests, on both brokers or on ours alone."""

    client: Client
    file: str
    on_both: bool


def claims_of(report: Report) -> set[Claim]:
    """What a run has shown; a client that met both brokers in a file need not be named twice."""
    told = {Claim(Client(*who), file, on_both) for file, entries in report.items() for *who, on_both in entries}
    return {claim for claim in told if claim.on_both or claim._replace(on_both=True) not in told}


def read_table(text: str) -> set[Claim]:
    """What the page claims."""
    table = text.partition(BEGIN)[2].partition(END)[0]
    return {
        Claim(Client(name, version), f"tests/{file}.py", on_both)
        for name, version, *cells in _ROW.findall(table)
        for on_both, cell in zip((True, False), cells, strict=True)
        for file in re.findall(r"`([\w/]+)`", cell)
    }


def faults_of(claimed: set[Claim], report: Report) -> list[str]:
    """Where a run contradicts the page: a client or version that it does not know, one that was not there."""
    seen = {_without_chosen(claim) for claim in claims_of(report)}
    claimed = {_without_chosen(claim) for claim in claimed}
    known = {claim.client for claim in claimed}
    strangers = sorted({claim.client for claim in seen} - known)
    missed = sorted(claim for claim in claimed if claim.file in report and claim not in seen)
    return [
        *(f"{client.name} {client.version} was tested and is not in the table" for client in strangers),
        *(f"{claim.client.name} {claim.client.version} was not seen in {claim.file}" for claim in missed),
    ]


def _without_chosen(claim: Claim) -> Claim:
    """A version that the distribution chooses, and no lock file of ours, contradicts nothing."""
    return claim._replace(client=Client(claim.client.name, "")) if claim.client.name in _OF_THE_SYSTEM else claim


def merge(claimed: set[Claim], report: Report) -> set[Claim]:
    """The files of the run as it saw them, the others as they stand."""
    return {claim for claim in claimed if claim.file not in report} | claims_of(report)


def page(text: str, claims: Iterable[Claim]) -> str:
    """The page with its table made anew."""
    cells: defaultdict[Client, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for claim in sorted(claims):
        cells[claim.client][not claim.on_both].append(f"`{claim.file.removeprefix('tests/').removesuffix('.py')}`")
    lines = ["| client | as our broker was told | on both brokers in | on ours alone in |", "|---|---|---|---|"]
    for client, (both, ours) in sorted(cells.items()):
        known_as = _KNOWN_AS.get(client.name, client.name)
        lines.append(f"| {known_as} | `{client.name} {client.version}` | {', '.join(both)} | {', '.join(ours)} |")
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n".join(lines) + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    standing = PAGE.read_text("utf-8")
    PAGE.write_text(page(standing, merge(read_table(standing), json.loads(CACHED.read_text()))), "utf-8")

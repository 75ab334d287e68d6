"""What a node counts, and how Prometheus reads it."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.errors import ErrorCode
from penstock.kafka.wire.apis import APIS
from penstock.metrics import family, single

# Any client chooses these names, and each one is kept and shown.
_SOFTWARE_MAX = 100
_SOFTWARE_CHARS_MAX = 64


class Counters:
    """Plain numbers; the hot path only adds."""

    def __init__(self) -> None:
        self.requests = dict.fromkeys(APIS, 0)
        self.refusals: dict[int, int] = {}
        self.closed: dict[str, int] = {}
        self.software: dict[tuple[str, str], int] = {}
        self.produced_records = 0
        self.produced_batches = 0
        self.produced_bytes = 0
        self.repeats = 0
        self.fetched_bytes = 0
        self.syncs = 0
        self.sync_failures = 0
        self.write_failures = 0
        self.damaged_reads = 0
        self.connections = 0
        self.pauses = 0

    def produced(self, batches: int, records: int, size: int) -> None:
        self.produced_batches += batches
        self.produced_records += records
        self.produced_bytes += size

    def refused(self, code: int) -> None:
        self.refusals[code] = self.refusals.get(code, 0) + 1

    def called_by(self, name: str, version: str) -> None:
        """A client has said what it is; whatever is too much is counted as `other`."""
        told = (name, version)
        if told not in self.software and (
            len(self.software) >= _SOFTWARE_MAX or max(map(len, told)) > _SOFTWARE_CHARS_MAX
        ):
            told = ("other", "other")
        self.software[told] = self.software.get(told, 0) + 1

    def closed_for(self, reason: str) -> None:
        self.closed[reason] = self.closed.get(reason, 0) + 1


_TEXTS = {
    "produced_records": "Records stored.",
    "produced_batches": "Record batches stored.",
    "produced_bytes": "Bytes of record batches stored.",
    "repeats": "Batches of idempotent producers recognised as repeats.",
    "fetched_bytes": "Bytes of record batches sent to consumers.",
    "syncs": "Group commits ended.",
    "sync_failures": "Group commits failed; each stops its partition.",
    "write_failures": "Group writes failed, for example on a full disk.",
    "damaged_reads": "Reads that met a damaged record.",
    "connections": "Connections accepted.",
    "pauses": "Times a client was not read from because it had too much unanswered.",
}


def render_metrics(counters: Counters, gauges: dict[str, tuple[str, int]]) -> str:
    """The Prometheus text of all counters and the given gauges (name -> help, value)."""
    lines: list[str] = []

    def add(name: str, help: str, label: str, counts: Iterable[tuple[str, int]]) -> None:
        lines.extend(family(f"penstock_broker_{name}_total", "counter", help, (({label: of}, n) for of, n in counts)))

    for name, text in _TEXTS.items():
        lines += single(f"penstock_broker_{name}_total", "counter", text, getattr(counters, name))
    add("requests", "Requests by API.", "api", ((APIS[key].name, n) for key, n in counters.requests.items()))
    refusals = ((ErrorCode(code).name, n) for code, n in counters.refusals.items())
    add("refusals", "Produced batches refused, by error.", "error", refusals)
    add("connections_closed", "Connections closed by the broker.", "reason", counters.closed.items())
    clients = [({"software": name, "version": version}, n) for (name, version), n in counters.software.items()]
    text = "Clients by the software and version they say they are."
    lines += family("penstock_broker_clients_total", "counter", text, clients)
    for name, (text, value) in gauges.items():
        lines += single(f"penstock_broker_{name}", "gauge", text, value)
    return "\n".join(lines) + "\n"

"""The doors by which events come in; declared here, opened by the edge."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Http:
    """POST /ingest/<path>: JSON, NDJSON, CloudEvents. Without a path: the name of the topic."""

    path: str = ""


Source = Http

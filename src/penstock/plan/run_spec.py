"""What the supervisor tells its children about a run."""

from __future__ import annotations

import msgspec

from penstock.config.analyze import AnalyzeConfig
from penstock.config.edge import EdgeConfig
from penstock.guarantee import Queue
from penstock.kafka.target import KafkaTarget
from penstock.plan.declaration import Declaration

CHECKED_FIRST = "--checked-first"  # for the edge: take nothing before the supervisor says that the queries can run

LEASED = "--leased"  # for analyze: write nothing but while the supervisor says that the lease of the app is held


class RunSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One run of an app."""

    app: str  # as load_app takes it, with an absolute path
    declared: Declaration | None = None  # without it, whoever needs the plan imports the app
    data: str  # absolute
    queue: KafkaTarget
    kind: Queue
    edge: EdgeConfig
    analyze: AnalyzeConfig

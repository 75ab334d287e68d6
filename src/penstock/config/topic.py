"""A topic's settings by their Kafka names, and as the log uses them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.config.setting import DAY_MS, GIB, HOUR_MS, MIB, clipped, hint

DURABLE, MEMORY = "disk", "memory"


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """One topic setting by its Kafka name: how it reads, what it may be, what it does here."""

    name: str
    kind: str  # Kafka's ConfigType: "boolean", "string", "int", "long", "list"
    default: str
    doc: str
    at_least: int = 0
    choices: tuple[str, ...] = ()

    def fault(self, value: str) -> str | None:
        """What is wrong with `value`, as a sentence, or None."""
        if self.choices:
            allowed = " or ".join(self.choices)
            return None if value in self.choices else f"{self.name} must be {allowed}, not {clipped(value)!r}"
        if self.kind in ("int", "long"):
            limit = 2**31 - 1 if self.kind == "int" else 2**63 - 1
            try:
                number = int(value)
            except ValueError:
                return f"{self.name} must be a whole number, not {clipped(value)!r}"
            if not self.at_least <= number <= limit:
                return f"{self.name} must be between {self.at_least} and {limit}, not {number}"
        return None


TOPIC_SETTINGS: dict[str, TopicSetting] = {
    s.name: s
    for s in (
        TopicSetting("cleanup.policy", "list", "delete", "Old segments are deleted.", choices=("delete",)),
        TopicSetting(
            "compression.type", "string", "producer", "Batches stay as the producer compressed them.",
            choices=("producer",),
        ),
        TopicSetting("max.message.bytes", "int", "1048588", "Largest record batch accepted.", 61),
        TopicSetting(
            "message.timestamp.type", "string", "CreateTime", "Whose clock stamps records.",
            choices=("CreateTime", "LogAppendTime"),
        ),
        TopicSetting(
            "message.timestamp.before.max.ms", "long", str(2**63 - 1), "How far in the past a record may claim to be."
        ),
        TopicSetting(
            "message.timestamp.after.max.ms", "long", str(HOUR_MS), "How far in the future a record may claim to be."
        ),
        TopicSetting("min.insync.replicas", "int", "1", "One node, one replica.", choices=("1",)),
        TopicSetting("retention.bytes", "long", "-1", "Largest size of a partition; -1: no limit.", -1),
        TopicSetting("retention.ms", "long", str(7 * DAY_MS), "Age at which segments go; -1: never.", -1),
        TopicSetting("segment.bytes", "int", str(GIB), "Size at which a new segment starts.", 1 * MIB),
        TopicSetting("segment.ms", "long", str(7 * DAY_MS), "Age at which a new segment starts.", 1000),
        TopicSetting("flush.messages", "long", "1", "Every acknowledged record is synced.", 1, choices=("1",)),
        TopicSetting(
            "penstock.durability", "string", DURABLE,
            "disk: acknowledged after fsync. memory: acknowledged once written; a power cut may lose it.",
            choices=(DURABLE, MEMORY),
        ),
        TopicSetting(
            "penstock.check.records", "boolean", "true",
            "The broker refuses a batch whose records do not lie where their lengths and their count say.",
            choices=("true", "false"),
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The topic settings as the log uses them."""

    max_message_bytes: int = 1048588
    log_append_time: bool = False
    timestamp_before_max_ms: int = 2**63 - 1
    timestamp_after_max_ms: int = HOUR_MS
    retention_bytes: int = -1
    retention_ms: int = 7 * DAY_MS
    segment_bytes: int = GIB
    segment_ms: int = 7 * DAY_MS
    in_memory: bool = False
    checks_records: bool = True


def topic_config(overrides: Mapping[str, str]) -> TopicConfig:
    """The effective settings of a topic; `overrides` have been checked by topic_faults."""

    def value(name: str) -> str:
        return overrides.get(name, TOPIC_SETTINGS[name].default)

    return TopicConfig(
        max_message_bytes=int(value("max.message.bytes")),
        log_append_time=value("message.timestamp.type") == "LogAppendTime",
        timestamp_before_max_ms=int(value("message.timestamp.before.max.ms")),
        timestamp_after_max_ms=int(value("message.timestamp.after.max.ms")),
        retention_bytes=int(value("retention.bytes")),
        retention_ms=int(value("retention.ms")),
        segment_bytes=int(value("segment.bytes")),
        segment_ms=int(value("segment.ms")),
        in_memory=value("penstock.durability") == MEMORY,
        checks_records=value("penstock.check.records") == "true",
    )


def topic_faults(overrides: Mapping[str, str | None]) -> list[str]:
    """Every fault of the given topic settings, as sentences."""
    faults = []
    for name, value in overrides.items():
        known = TOPIC_SETTINGS.get(name)
        if known is None:
            faults.append(f"Unknown topic config name: {clipped(name)}{hint(name, TOPIC_SETTINGS)}")
        elif value is None:
            faults.append(f"{name} has no value")
        elif fault := known.fault(value):
            faults.append(fault)
    return faults

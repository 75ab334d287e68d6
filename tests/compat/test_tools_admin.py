"""Kafka's own admin tools on topics, settings, offsets and log folders."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from asking.connection import Connection
from asking.java import run_java
from asking.members import write
from asking.requests import create_topic

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
OFFSETS = "org.apache.kafka.tools.GetOffsetShell"
LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"
DELETE_RECORDS = "org.apache.kafka.tools.DeleteRecordsCommand"


def said(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kafkas_tools_look_after_a_topic(broker_address: str, topic: str, connection: Connection) -> None:
    """kafka-topics, kafka-get-offsets, kafka-log-dirs, kafka-delete-records."""
    at = ("--bootstrap-server", broker_address)
    assert topic in said(run_java(TOPICS, *at, "--create", "--topic", topic, "--partitions", "2"))
    write(broker_address, topic, ["one", "two", "three"], partition=0)
    assert said(run_java(OFFSETS, *at, "--topic", topic)).split() == [f"{topic}:0:3", f"{topic}:1:0"]
    told = said(run_java(LOG_DIRS, *at, "--describe", "--topic-list", topic)).splitlines()[-1]
    parts = [part for log_dir in json.loads(told)["brokers"][0]["logDirs"] for part in log_dir["partitions"]]
    sizes = {part["partition"]: part["size"] for part in parts}
    assert sizes[f"{topic}-0"] > 0 == sizes[f"{topic}-1"]
    assert "PartitionCount: 2" in said(run_java(TOPICS, *at, "--describe", "--topic", topic))


def test_kafkas_tools_cut_and_configure(
    broker_address: str, topic: str, connection: Connection, tmp_path: Path
) -> None:
    """kafka-delete-records; kafka-configs for topics, brokers and groups."""
    at = ("--bootstrap-server", broker_address)
    create_topic(connection, topic)
    write(broker_address, topic, ["one", "two", "three"])
    wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": 2}], "version": 1}
    (tmp_path / "cut.json").write_text(json.dumps(wanted))
    cut = said(run_java(DELETE_RECORDS, *at, "--offset-json-file", str(tmp_path / "cut.json")))
    assert "low_watermark: 2" in cut
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    said(run_java(CONFIGS, *at, "--alter", *of_topic, "--add-config", "retention.ms=123456"))
    assert "retention.ms=123456" in said(run_java(CONFIGS, *at, "--describe", *of_topic))
    group = said(run_java(CONFIGS, *at, "--describe", "--entity-type", "groups", "--entity-name", "g", "--all"))
    assert "consumer.session.timeout.ms=45000" in group
    said(run_java(CONFIGS, *at, "--describe", "--entity-type", "brokers", "--entity-name", "1"))

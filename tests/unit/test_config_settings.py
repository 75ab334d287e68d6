"""Settings: layers, bounds, every fault at once, and every topic setting."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest

from penstock.config.analyze import AnalyzeConfig
from penstock.config.broker import BrokerConfig
from penstock.config.setting import build_config, clipped, hint
from penstock.config.topic import TOPIC_SETTINGS, TopicConfig, topic_config, topic_faults
from penstock.errors import ConfigError

BOUNDED = [field for field in dataclasses.fields(BrokerConfig) if type(field.default) is int]


def test_later_layers_win_and_every_value_knows_where_it_came_from() -> None:
    layers: list[tuple[str, Mapping[str, object]]] = [
        ("penstock.toml", {"topics_max": 5, "listen": "127.0.0.1:1"}),
        ("PENSTOCK_LISTEN", {"listen": "127.0.0.1:2"}),
        ("--listen", {"listen": "127.0.0.1:3"}),
    ]
    config, origins = build_config(layers, BrokerConfig)
    assert (config.topics_max, config.listen) == (5, "127.0.0.1:3")
    assert (origins["topics_max"], origins["listen"], origins["data"]) == ("penstock.toml", "--listen", "default")


def test_without_layers_all_is_default() -> None:
    config, origins = build_config([], BrokerConfig)
    assert config == BrokerConfig()
    assert set(origins.values()) == {"default"}


def test_all_faults_are_told_at_once() -> None:
    """Nobody likes to be told the second fault after the first is mended."""
    layer = {"topic_max": 1, "topics_max": 0, "insecure": "perhaps", "data": 7, "partitions_max": "many", "qqq": 1}
    with pytest.raises(ConfigError) as refused:
        build_config([("penstock.toml", layer)], BrokerConfig)
    assert len(refused.value.faults) == 6
    text = str(refused.value)
    assert "unknown setting topic_max, did you mean topics_max?" in text
    assert "topics_max must be at least 1, not 0" in text
    assert "insecure must be true or false" in text
    assert "data must be text" in text
    assert "partitions_max must be a whole number" in text
    assert "unknown setting qqq" in text
    assert all(fault.startswith("penstock.toml: ") for fault in refused.value.faults)


@pytest.mark.parametrize("field", BOUNDED, ids=lambda field: field.name)
def test_numbers_keep_to_their_bounds(field: dataclasses.Field[int]) -> None:
    """The bound itself is allowed, one beyond is not."""
    for bound, beyond in ((field.metadata["at_least"], -1), (field.metadata["at_most"], 1)):
        if bound is not None:
            assert getattr(build_config([("x", {field.name: bound})], BrokerConfig)[0], field.name) == bound
            with pytest.raises(ConfigError):
                build_config([("x", {field.name: bound + beyond})], BrokerConfig)


@pytest.mark.parametrize("master", ["yarn", "local[]", "local[*] ", "k8s://127.0.0.1"])
def test_a_spark_master_that_does_not_work_is_refused(master: str) -> None:
    with pytest.raises(ConfigError, match=r"penstock\.toml: master cannot be .* A Spark cluster needs"):
        build_config([("penstock.toml", {"master": master})], AnalyzeConfig)
    assert build_config([("penstock.toml", {"master": "local[8]"})], AnalyzeConfig)[0].master == "local[8]"


def test_every_setting_has_a_reason_and_its_default_is_allowed() -> None:
    for field in dataclasses.fields(BrokerConfig):
        assert len(field.metadata["reason"]) > 10
        build_config([("x", {field.name: field.default})], BrokerConfig)


@pytest.mark.parametrize("field", BOUNDED, ids=lambda field: field.name)
def test_no_number_may_be_negative(field: dataclasses.Field[int]) -> None:
    """A limit below zero is a mistake, not another meaning."""
    with pytest.raises(ConfigError):
        build_config([("x", {field.name: -1})], BrokerConfig)


@pytest.mark.parametrize(
    ("raw", "want"), [("1", True), ("TRUE", True), ("on", True), ("0", False), ("No", False), (True, True), (0, False)]
)
def test_truth_is_read_from_text(raw: object, want: bool) -> None:
    assert build_config([("PENSTOCK_INSECURE", {"insecure": raw})], BrokerConfig)[0].insecure is want


def test_numbers_are_read_from_text() -> None:
    assert build_config([("x", {"topics_max": "10_000"})], BrokerConfig)[0].topics_max == 10_000
    for raw in ("", "1.5", "ten", 1.5, True, None):
        with pytest.raises(ConfigError):
            build_config([("x", {"topics_max": raw})], BrokerConfig)


@pytest.mark.parametrize("name", sorted(TOPIC_SETTINGS))
def test_every_topic_setting_takes_its_default_and_refuses_nonsense(name: str) -> None:
    setting = TOPIC_SETTINGS[name]
    assert topic_faults({name: setting.default}) == []
    assert setting.doc
    for nonsense in ("", "nonsense", "1e3", str(2**63), str(setting.at_least - 1)):
        (fault,) = topic_faults({name: nonsense})
        assert fault.startswith(name)
    (fault,) = topic_faults({name: None})
    assert "no value" in fault


def test_the_defaults_of_a_topic_are_written_once() -> None:
    """As names clients know, and as the log uses them: both say the same."""
    assert topic_config({}) == TopicConfig()


@pytest.mark.parametrize(
    ("name", "value", "field", "want"),
    [
        ("max.message.bytes", "5000", "max_message_bytes", 5000),
        ("message.timestamp.type", "LogAppendTime", "log_append_time", True),
        ("message.timestamp.before.max.ms", "7", "timestamp_before_max_ms", 7),
        ("message.timestamp.after.max.ms", "8", "timestamp_after_max_ms", 8),
        ("retention.bytes", "9", "retention_bytes", 9),
        ("retention.ms", "-1", "retention_ms", -1),
        ("segment.bytes", "2000000", "segment_bytes", 2_000_000),
        ("segment.ms", "6000", "segment_ms", 6000),
        ("penstock.durability", "memory", "in_memory", True),
    ],
)
def test_topic_settings_reach_the_log(name: str, value: str, field: str, want: object) -> None:
    assert topic_faults({name: value}) == []
    assert getattr(topic_config({name: value}), field) == want


def test_an_unknown_topic_setting_gets_a_hint() -> None:
    (fault,) = topic_faults({"retention.mss": "1"})
    assert fault == "Unknown topic config name: retention.mss, did you mean retention.ms?"
    assert hint("qqqqqq", TOPIC_SETTINGS) == ""
    assert len(clipped("x" * 10_000)) < 110

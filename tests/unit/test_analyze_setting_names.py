"""A misspelt setting of Spark is named; one that Spark does not register is not."""

from __future__ import annotations

from penstock.analyze.setting_names import name_faults

KNOWN = {"spark.sql.shuffle.partitions", "spark.executor.memory", "spark.sql.catalog.spark_catalog"}


def test_a_misspelt_setting_is_named_with_the_right_one() -> None:
    assert name_faults(["spark.sql.shufle.partitions", "spark.exec.memory"], KNOWN) == [
        "Spark has no setting spark.sql.shufle.partitions, did you mean spark.sql.shuffle.partitions?",
        "Spark has no setting spark.exec.memory, did you mean spark.executor.memory?",
    ]


def test_a_name_outside_of_sparks_is_named() -> None:
    assert name_faults(["shuffle.partitions"], KNOWN) == [
        "shuffle.partitions is no setting of Spark: their names begin with spark."
    ]


def test_known_and_open_names_pass() -> None:
    given = ["spark.executor.memory", "spark.hadoop.fs.s3a.path", "spark.sql.catalog.spark_catalogs", "spark.acme.mode"]
    assert name_faults(given, KNOWN) == []

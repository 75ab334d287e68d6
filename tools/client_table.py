"""Writes the table of docs/clients.md from what the tests run with: python tools/client_table.py."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

from confluent_kafka import libversion

from penstock.jvm.jars import KAFKA_LOCK, read_lock
from penstock.jvm.spark import SPARK_LOCK

PAGE = Path(__file__).parent.parent / "docs" / "clients.md"
BEGIN, END = "<!-- made by tools/client_table.py -->\n", "<!-- end -->\n"


def rows() -> list[tuple[str, str, str]]:
    """Client, version and where it is tested."""
    kafka = {jar.artifact: jar.version for jar in read_lock(KAFKA_LOCK)}
    spark = {jar.artifact: jar.version for jar in read_lock(SPARK_LOCK)}
    connector = f"{spark['spark-sql-kafka-0-10_2.13']} on kafka-clients {spark['kafka-clients']}"
    clients = "`tests/compat/test_clients_*.py`"
    python = f"{clients}, `test_groups_clients.py`, `test_transactions_clients.py`"
    return [
        ("confluent-kafka", f"{version('confluent-kafka')} on librdkafka {libversion()[0]}", python),
        ("kafka-python", version("kafka-python"), python),
        ("aiokafka", version("aiokafka"), python),
        ("Java: console tools and judges", kafka["kafka-clients"], f"{clients}, `test_*_tools.py`, `test_tools_*.py`"),
        ("Spark's connector", connector, "`tests/spark`"),
        ("kcat", "as the distribution packages it; 1.7.1 in Debian 12", clients),
    ]


def page(text: str) -> str:
    """The page with its table made anew."""
    before, _, rest = text.partition(BEGIN)
    lines = ["| client | version | tested in |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows())]
    return before + BEGIN + "\n".join(lines) + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")

"""penstock.testing costs nothing before a query runs."""

from __future__ import annotations

import subprocess
import sys

DECLARES = """
import sys
from penstock import App
from penstock.testing import QueryTest
import penstock.testing.pytest_plugin
app = App("app")
app.topic("numbers", schema="n INT")
app.sql("big", "SELECT n, _event FROM STREAM(numbers) WHERE n > 9")
test = QueryTest(app, "big")
print(sorted({"pyspark", "py4j", "hypothesis", "confluent_kafka"} & set(sys.modules)))
sys.modules["hypothesis"] = None
try:
    test.arrivals(numbers=[])
except Exception as error:
    print(error)
"""


def test_a_query_test_imports_no_spark_and_needs_no_hypothesis() -> None:
    done = subprocess.run([sys.executable, "-c", DECLARES], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [
        "[]",
        "arrivals needs hypothesis, which is not installed: pip install hypothesis",
    ]

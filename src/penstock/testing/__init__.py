"""Runs the queries of an app on lists of rows, in unit tests without a broker.

queries        one query under test: as a batch, and as a stream
events         the rows of a test as records of a topic
arrivals       orders and pieces in which events may arrive, for hypothesis
shared_spark   the Spark session that all tests of a process share
pytest_plugin  the session as a fixture
"""

from penstock.analyze.trial_records import DeadRecord, QueryFailedError
from penstock.testing.events import Event
from penstock.testing.queries import QueryTest, Result, StreamRun
from penstock.testing.shared_spark import end_shared_spark, shared_spark

__all__ = [
    "DeadRecord",
    "Event",
    "QueryFailedError",
    "QueryTest",
    "Result",
    "StreamRun",
    "end_shared_spark",
    "shared_spark",
]

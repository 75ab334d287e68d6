"""Continuous queries on Spark; the only place that imports it."""

"""Measures our broker beside a warm Apache Kafka, in one run, with the same clients."""

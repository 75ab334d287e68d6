"""Kafka bytes to values and back; pure."""

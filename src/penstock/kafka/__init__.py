"""Kafka's protocol, for both ends of a connection: requests, record batches, addresses.

target    the broker addresses that a client connects to
wire/     requests and responses to bytes and back
records/  record batches, format 2
"""

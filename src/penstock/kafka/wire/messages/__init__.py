"""The messages of Kafka's protocol as tables of fields, in wire order.

One file an API, named as Kafka names it, with its request and its response.

consumer_protocol  subscription and assignment inside JoinGroup and SyncGroup; no API
"""

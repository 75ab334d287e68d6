"""Connectors, one file or folder each: how events enter and how results leave.

http/  POST /ingest: events over HTTP
live/  GET /live: results over server-sent events and WebSocket
"""

"""POST /ingest: events over HTTP as JSON, arrays, NDJSON or CloudEvents.

routes       the ASGI application: from a request to stored events and the answer
bodies       decodes a whole body into events
line_stream  stores an NDJSON body while the rest of it arrives
ndjson       splits bytes into lines, enforces the minimum pace, counts outcomes
"""

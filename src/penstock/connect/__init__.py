"""What connectors and the edge share: the HTTP answers to a sender, and the reasons why an event is not stored.

not_stored  classifies errors of the queue: permanent or retriable, with HTTP status
problem     the body of an HTTP error (RFC 9457)
responses   the HTTP answer to each outcome of a request
asgi        reads a request body within limits, and sends an answer
"""

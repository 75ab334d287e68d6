"""A queue node: step(events, now_ms) -> effects. One API, one handler, one file."""

"""Which segments are too old or too many."""

from __future__ import annotations

from penstock.queue.log.log import Log


def plan_start(log: Log, now_ms: int) -> int:
    """The offset at which the log should start: segments wholly before it may go."""
    config = log.config
    start = log.start_offset
    closed = log.segments[:-1]
    if config.retention_ms >= 0:
        for segment, following in zip(closed, log.segments[1:], strict=True):
            newest = segment.index.max_timestamp
            if newest < 0:
                continue  # without times, or damaged, it says nothing of its age: it goes with the next that does
            if newest >= now_ms - config.retention_ms:
                break
            start = max(start, following.base_offset)
    if config.retention_bytes >= 0:
        size = sum(segment.end for segment in log.segments)
        for segment, following in zip(closed, log.segments[1:], strict=True):
            if size - segment.end < config.retention_bytes:
                break
            size -= segment.end
            start = max(start, following.base_offset)
    return min(start, log.durable.offset)


def should_roll(log: Log, now_ms: int) -> bool:
    """Whether everything in the active segment has expired, so that it can go once a new one is begun."""
    newest = log.active.index.max_timestamp
    return (
        log.config.retention_ms >= 0
        and log.active.end > 0
        and log.durable.offset == log.visible.offset == log.next_offset
        and not log.is_syncing
        and 0 <= newest < now_ms - log.config.retention_ms
    )

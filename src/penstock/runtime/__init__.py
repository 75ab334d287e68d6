"""Where a node meets the world: event loop, disk, clock, syncs."""

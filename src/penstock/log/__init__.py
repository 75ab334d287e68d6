"""One partition on disk: segments, sparse index, producer state, recovery; through the disk port only."""

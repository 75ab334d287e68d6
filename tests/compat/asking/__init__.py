"""What the suite asks both brokers with: a bare connection, hand-made batches, five real clients."""

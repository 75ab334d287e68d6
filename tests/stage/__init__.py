"""What tests of the core share: batches made by hand, a log and a node on a simulated disk."""

"""Record batches (Kafka's format 2): nouns shared by all tiers."""
